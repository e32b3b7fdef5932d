/** Returns the least processor time of this process for one of several calls, in milliseconds. */
export async function cpuMsOf(run: () => unknown, rounds: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) {
    const before = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}

const referenceText = "the quick brown fox ".repeat(20_000);
/** Limits are stated for a machine (2 × AMD EPYC) on which the reference takes so many milliseconds. */
const referenceMs = 11;

/**
 * Returns by which factor this machine is now slower than the one that limits are stated for. A busy machine
 * also charges more processor time for the same work.
 */
export async function slowdown(): Promise<number> {
  const ms = await cpuMsOf(
    () => referenceText.replace(/\b(\w)(\w*)/g, (_, first: string, rest: string) => rest + first),
    5,
  );
  return Math.max(1, ms / referenceMs);
}
