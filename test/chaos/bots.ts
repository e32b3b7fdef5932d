import { once } from "node:events";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";

/** One place for a process of the bot, which is started again whenever it has ended. */
export interface Bot {
  /** Undefined between two lives. */
  readonly current: RunningParley | undefined;
  /** How often it has been started. */
  readonly lives: number;
  /** Lets the process go on after a pause. */
  resume(): void;
  /** Resolves when it is connected, starting it where it is not running. */
  ready(): Promise<void>;
  /** Ends it for good. */
  stop(): Promise<void>;
  /** Everything that all its lives have printed. */
  output(): string;
}

/** As a supervisor would: what ends is started again after a moment. */
export function createBot(folder: string, settings: Readonly<Record<string, string>>): Bot {
  let current: RunningParley | undefined;
  let lives = 0;
  let printed = "";
  const over = new AbortController();
  const living = live();

  async function live(): Promise<void> {
    while (!over.signal.aborted) {
      current = await runParley({ folder, settings });
      lives += 1;
      await current.ended;
      printed += `${current.output()}\n--- ended: ${current.process.signalCode ?? current.process.exitCode}\n`;
      current = undefined;
      if (!over.signal.aborted) await new Promise((resolve) => setTimeout(resolve, 300));
    }
  }

  return {
    get current() {
      return current;
    },
    get lives() {
      return lives;
    },
    resume: () => void current?.process.kill("SIGCONT"),
    async ready() {
      for (;;) {
        const parley = current;
        if (parley !== undefined && (await isReady(parley))) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async stop() {
      over.abort();
      const child = current?.process;
      if (child !== undefined && child.exitCode === null && child.signalCode === null) {
        child.kill("SIGCONT");
        child.kill("SIGTERM");
        const late = setTimeout(() => child.kill("SIGKILL"), 15_000);
        await once(child, "exit");
        clearTimeout(late);
      }
      await living;
    },
    output: () => printed + (current?.output() ?? ""),
  };
}

async function isReady(parley: RunningParley): Promise<boolean> {
  try {
    await parley.says(/Ready\./);
    return true;
  } catch {
    // It ended before it was connected; its next life may be.
    return false;
  }
}
