/** The options of {@link growthOf}. */
export interface GrowthOptions {
  /** The length of the smallest input, in characters. It doubles from there. */
  readonly size: number;
  readonly doublings?: number;
}

/** Up to this factor no further measurement is made. */
const linear = 2.5;
const maxRounds = 5;

/**
 * Returns the factor by which the time grows with each doubling of the input. It is about 2 where the time is
 * linear and 4 where it is quadratic. The time is that of this thread's processor, since on a busy machine
 * only the larger input is interrupted by others. The fastest of three runs counts. Times under half a
 * millisecond count as half a millisecond, since they cannot be measured.
 */
export function growthOf(
  make: (size: number) => string,
  work: (text: string) => unknown,
  { size, doublings = 3 }: GrowthOptions,
): number {
  const timeOf = (text: string): number => {
    const times = [1, 2, 3].map(() => {
      const startedAt = threadMs();
      work(text);
      return threadMs() - startedAt;
    });
    return Math.max(0.5, Math.min(...times));
  };
  const growth = (): number => {
    const small = timeOf(make(size));
    const large = timeOf(make(size * 2 ** doublings));
    return (large / small) ** (1 / doublings);
  };
  work(make(size));
  // Another process may disturb one measurement. Quadratic time stays quadratic in all of them.
  let least = growth();
  for (let round = 1; round < maxRounds && least > linear; round++) least = Math.min(least, growth());
  return least;
}

function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
