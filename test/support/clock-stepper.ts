import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const preload = pathToFileURL(join(import.meta.dirname, "stepped-clock-preload.ts")).href;

/** The wall clock of Node processes, which a test steps while they run. Their monotonic clock goes on. */
export interface ClockStepper {
  /** Node's options for a process that has this clock. Its worker threads have the system's clock. */
  readonly nodeArgs: readonly string[];
  /** The same for a process that is started with an environment only, as `NODE_OPTIONS`. */
  readonly settings: Readonly<Record<string, string>>;
  /** Returns the time that these processes read, in Unix ms. */
  now(): number;
  /** Steps the clock by so many milliseconds, forward or back. The processes read it within 10 ms. */
  stepBy(ms: number): Promise<void>;
  /** Steps it to the system's time. */
  reset(): Promise<void>;
  /** Removes its file. Processes that still run keep the offset. */
  remove(): Promise<void>;
}

/** Creates a {@link ClockStepper}. */
export async function createClockStepper(): Promise<ClockStepper> {
  const folder = await mkdtemp(join(tmpdir(), "parley-clock-"));
  const file = join(folder, "offset");
  let offsetMs = 0;

  async function set(ms: number): Promise<void> {
    offsetMs = ms;
    // The file is renamed into place, so that nobody reads half a number.
    await writeFile(`${file}.new`, String(ms));
    await rename(`${file}.new`, file);
  }

  await set(0);
  const url = `${preload}?${new URLSearchParams({ file }).toString()}`;
  return {
    nodeArgs: ["--import", url],
    settings: { NODE_OPTIONS: `--import=${url}` },
    now: () => Date.now() + offsetMs,
    stepBy: (ms) => set(offsetMs + ms),
    reset: () => set(0),
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
