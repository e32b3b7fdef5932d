import { once } from "node:events";
import { sleep, sleepUnlessAborted } from "../../src/support/clock.ts";
import { runParley, type RunningParley } from "../e2e/process/run-parley.ts";
import { createClockStepper, type ClockStepper } from "../support/clock-stepper.ts";

const restartDelayMs = 300;
const pollMs = 50;

/** An instance of the bot whose process is restarted whenever it exits. */
export interface Bot {
  /** `undefined` while it is being restarted. */
  readonly current: RunningParley | undefined;
  /** The number of starts. */
  readonly starts: number;
  /** The clock of its processes. */
  readonly clock: ClockStepper;
  /** Resumes a paused process. */
  resume(): void;
  /** Resolves when the process, or one of the next, is connected. */
  ready(): Promise<void>;
  /** Makes a rolling update: starts a second process and, once connected, stops the first with SIGTERM. */
  roll(): Promise<void>;
  /** Stops the process, which is not restarted. */
  stop(): Promise<void>;
  /** Returns the output of all its processes. */
  output(): string;
}

/** @param root folder with `src/main.ts` */
export interface BotOptions {
  readonly root: string;
  readonly folder: string;
  readonly settings: Readonly<Record<string, string>>;
}

/** Creates a bot that is restarted after 300 ms, as by a supervisor. */
export async function createBot({ root, folder, settings }: BotOptions): Promise<Bot> {
  const clock = await createClockStepper();
  let current: RunningParley | undefined;
  let successor: RunningParley | undefined;
  let starts = 0;
  let printed = "";
  const stopping = new AbortController();

  async function start(): Promise<RunningParley> {
    starts += 1;
    return await runParley({
      program: `${root}/src/main.ts`,
      nodeArgs: clock.nodeArgs,
      folder,
      settings,
    });
  }

  const supervised = (async () => {
    while (!stopping.signal.aborted) {
      current = successor ?? (await start());
      successor = undefined;
      await current.ended;
      printed += `${current.output()}\n--- ended: ${current.process.signalCode ?? current.process.exitCode}\n`;
      if (successor !== undefined) continue;
      current = undefined;
      await sleepUnlessAborted(restartDelayMs, stopping.signal);
    }
  })();

  return {
    clock,
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
    async roll() {
      const before = current;
      if (before === undefined) return;
      const next = await start();
      if (!(await isReady(next)) || current !== before) {
        // It crashed itself, or the one to replace did.
        next.process.kill("SIGKILL");
        await next.ended;
        printed += `${next.output()}\n--- not used\n`;
        return;
      }
      successor = next;
      before.process.kill("SIGTERM");
      await before.ended;
    },
    async stop() {
      stopping.abort();
      for (let child = current?.process; child !== undefined; child = successor?.process) {
        await end(child);
        if (child === successor?.process) break;
      }
      await supervised;
      await clock.remove();
    },
    output: () => printed + (current?.output() ?? ""),
  };
}

async function end(child: RunningParley["process"]): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGCONT");
  child.kill("SIGTERM");
  const timeout = setTimeout(() => child.kill("SIGKILL"), 30_000);
  await once(child, "exit");
  clearTimeout(timeout);
}

async function isReady(parley: RunningParley): Promise<boolean> {
  try {
    await parley.says(/Ready\./);
    return true;
  } catch {
    // It exited before it was connected. The next process may connect.
    return false;
  }
}
