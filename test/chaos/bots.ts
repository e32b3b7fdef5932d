import { once } from "node:events";
import { sleep, sleepUnlessAborted } from "../../src/support/sleep.ts";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";

const restartDelayMs = 300;
const pollMs = 50;

/** An instance of the bot whose process is restarted whenever it exits. */
export interface Bot {
  /** `undefined` while it is being restarted. */
  readonly current: RunningParley | undefined;
  /** Number of starts. */
  readonly starts: number;
  /** Resumes a paused process. */
  resume(): void;
  /** Resolves when the process, or one of the next, is connected. */
  ready(): Promise<void>;
  /** Stops the process; it is not restarted. */
  stop(): Promise<void>;
  /** Output of all its processes. */
  output(): string;
}

/** Restarts after 300 ms, like a supervisor. */
export function createBot(folder: string, settings: Readonly<Record<string, string>>): Bot {
  let current: RunningParley | undefined;
  let starts = 0;
  let printed = "";
  const stopping = new AbortController();
  const supervised = supervise();

  async function supervise(): Promise<void> {
    while (!stopping.signal.aborted) {
      current = await runParley({ folder, settings });
      starts += 1;
      await current.ended;
      printed += `${current.output()}\n--- ended: ${current.process.signalCode ?? current.process.exitCode}\n`;
      current = undefined;
      await sleepUnlessAborted(restartDelayMs, stopping.signal);
    }
  }

  return {
    get current() {
      return current;
    },
    get starts() {
      return starts;
    },
    resume: () => void current?.process.kill("SIGCONT"),
    async ready() {
      for (;;) {
        const parley = current;
        if (parley !== undefined && (await isReady(parley))) return;
        await sleep(pollMs);
      }
    },
    async stop() {
      stopping.abort();
      const child = current?.process;
      if (child !== undefined && child.exitCode === null && child.signalCode === null) {
        child.kill("SIGCONT");
        child.kill("SIGTERM");
        const timeout = setTimeout(() => child.kill("SIGKILL"), 15_000);
        await once(child, "exit");
        clearTimeout(timeout);
      }
      await supervised;
    },
    output: () => printed + (current?.output() ?? ""),
  };
}

async function isReady(parley: RunningParley): Promise<boolean> {
  try {
    await parley.says(/Ready\./);
    return true;
  } catch {
    // It exited before it was connected; the next process may connect.
    return false;
  }
}
