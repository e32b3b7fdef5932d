import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import type { Log } from "../../core/telemetry.ts";

/** A check of the whole file in a process of its own, so that neither the start nor people wait for it. */
export interface IntegrityCheck {
  /** Runs work that no other reader may disturb; a running check is stopped, and begins anew afterwards. */
  without<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** @see {@link startIntegrityCheck} */
export interface IntegrityCheckOptions {
  readonly file: string;
  readonly log: Log;
  /** Called once, with what is wrong; not called for a sound file. */
  readonly onDamage: (findings: readonly string[]) => void;
}

const maxStarts = 20;
const deadlineMs = 30 * 60_000;

/** Starts the check. A check that cannot be completed is logged. */
export function startIntegrityCheck({ file, log, onDamage }: IntegrityCheckOptions): IntegrityCheck {
  let running: ChildProcess | undefined;
  let isDone = false;
  let starts = 0;

  const start = () => {
    if (isDone || running !== undefined) return;
    if (++starts > maxStarts) {
      isDone = true;
      log.warn({}, "the check of the store was interrupted too often: it is made at the next start");
      return;
    }
    const script = fileURLToPath(new URL("integrity-child.ts", import.meta.url));
    const child = spawn(process.execPath, [script, file], {
      stdio: ["ignore", "pipe", "ignore"],
      timeout: deadlineMs,
      killSignal: "SIGKILL",
    });
    running = child;
    child.unref();
    try {
      if (child.pid !== undefined) setPriority(child.pid, 10);
    } catch (error) {
      log.debug({ error }, "the check of the store runs with normal priority");
    }
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.once("error", (error) => log.warn({ error }, "the store could not be checked"));
    child.once("close", (code) => {
      if (running !== child) return;
      running = undefined;
      isDone = true;
      if (code !== 0)
        log.warn({ code }, "the check of the store did not complete: it is made at the next start");
      else if (output !== "[]") onDamage(JSON.parse(output) as readonly string[]);
    });
  };

  const stop = async () => {
    const child = running;
    running = undefined;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };

  start();
  return {
    async without(work) {
      await stop();
      try {
        return await work();
      } finally {
        start();
      }
    },
    async close() {
      isDone = true;
      await stop();
    },
  };
}
