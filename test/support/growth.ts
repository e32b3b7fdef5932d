/** How the time of `work` grows. Sizes double from `size`; the fastest of three runs counts. */
export interface GrowthOptions {
  /** Of the smallest input, in characters. */
  readonly size: number;
  readonly doublings?: number;
}

/** Up to this factor no further measurement is made. */
const linear = 2.5;
const maxRounds = 5;

/**
 * The factor by which the time grows with each doubling of the input: about 2 where it is linear, 4 where it is
 * quadratic. Times under half a millisecond count as half a millisecond, since they cannot be measured.
 */
export function growthOf(
  make: (size: number) => string,
  work: (text: string) => unknown,
  { size, doublings = 3 }: GrowthOptions,
): number {
  const timeOf = (text: string): number => {
    const times = [1, 2, 3].map(() => {
      const startedAt = performance.now();
      work(text);
      return performance.now() - startedAt;
    });
    return Math.max(0.5, Math.min(...times));
  };
  const growth = (): number => {
    const small = timeOf(make(size));
    const large = timeOf(make(size * 2 ** doublings));
    return (large / small) ** (1 / doublings);
  };
  work(make(size));
  // Another process may take the processor during one measurement; quadratic time stays quadratic in all of them.
  let least = growth();
  for (let round = 1; round < maxRounds && least > linear; round++) least = Math.min(least, growth());
  return least;
}
