import { setFlagsFromString } from "node:v8";
import type { Log } from "../core/telemetry.ts";

/** Closes resources in reverse order, even those that were still opening when a later one failed. */
export function createResourceStack(log: Log) {
  const stack = new AsyncDisposableStack();
  return {
    /** Returns what `opening` resolves to, and calls `close` with it in `closeAll`. */
    async add<T>(name: string, opening: Promise<T>, close: (opened: T) => Promise<void>): Promise<T> {
      stack.defer(async () => {
        const [opened] = await Promise.allSettled([opening]);
        if (opened.status === "rejected") return;
        try {
          await close(opened.value);
        } catch (error) {
          log.error({ resource: name, err: error }, "resource could not be closed");
        }
      });
      return await opening;
    },
    /** Waits for pending openings and closes everything. A failed close is logged. It never rejects. */
    closeAll: () => stack.disposeAsync(),
  };
}

/**
 * Keeps V8's young generation at its initial size while modules load. Loaded modules survive collection,
 * which makes V8 grow each semi-space to 32 MB, and an idle process never shrinks it again. This saves memory
 * when idle and costs no CPU time at start, as `bench/bot.ts` shows.
 */
export function holdYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=1");
}

/** Restores V8's default growth factor, so that the young generation grows under load. */
export function releaseYoungGeneration(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
}
