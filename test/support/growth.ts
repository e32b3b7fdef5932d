/** The options of {@link growthOf}. */
export interface GrowthOptions {
  /** The length of the smallest input, in characters. It doubles from there. */
  readonly size: number;
  readonly doublings?: number;
}

/** Up to this factor no further measurement is made. */
const linear = 2.5;
const maxRounds = 5;
const minMs = 40;

/**
 * Returns the factor by which the time grows with each doubling of the input. It is about 2 where the time is
 * linear and 4 where it is quadratic. The time is that of this thread's processor, since on a busy machine
 * only the larger input is interrupted by others. Some kernels count it in steps of 4 ms, so the work is
 * repeated until it has taken ten such steps.
 */
export function growthOf(
  make: (size: number) => string,
  work: (text: string) => unknown,
  { size, doublings = 3 }: GrowthOptions,
): number {
  const timeOf = (text: string): number => {
    const startedAt = threadMs();
    for (let runs = 1; ; runs++) {
      work(text);
      const ms = threadMs() - startedAt;
      if (ms >= minMs) return ms / runs;
    }
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
