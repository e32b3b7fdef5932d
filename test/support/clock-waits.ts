import type { Clock } from "../../src/core/clock.ts";

/** Makes the waits of a test's clock from its timers. */
export function toWaits(after: Clock["after"]): Pick<Clock, "sleep" | "timeout"> {
  return {
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted === true) return reject(signal.reason as Error);
        const abort = (): void => {
          cancel();
          reject(signal?.reason as Error);
        };
        const cancel = after(ms, () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        });
        signal?.addEventListener("abort", abort, { once: true });
      });
    },
    timeout(ms) {
      const controller = new AbortController();
      const reason = new DOMException("The operation timed out.", "TimeoutError");
      after(ms, () => controller.abort(reason), { keepsAlive: false });
      return controller.signal;
    },
  };
}
