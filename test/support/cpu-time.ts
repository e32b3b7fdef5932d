/** Processor time of this process for one call, the least of several, in milliseconds. Other processes do not count. */
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
/** Processor time of the reference on the machine that limits are stated for (2 × AMD EPYC, quiet), in milliseconds. */
const referenceMs = 11;

/**
 * How much slower this machine is now than the one that limits are stated for; 1 where it is as fast. A busy machine
 * also charges more processor time for the same work.
 */
export async function slowdown(): Promise<number> {
  const ms = await cpuMsOf(
    () => referenceText.replace(/\b(\w)(\w*)/g, (_, first: string, rest: string) => rest + first),
    5,
  );
  return Math.max(1, ms / referenceMs);
}
