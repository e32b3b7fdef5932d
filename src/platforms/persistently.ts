import { isParleyError } from "../assistant/errors.ts";

const firstDelayMs = 500;
const maxDelayMs = 10_000;

/**
 * Does something until it succeeds, waiting at least as long as an error asks for and twice as long each time.
 * Errors that the same call would meet again (no permission, refused content, no store) are thrown at once, others
 * when the next try would come after `deadline` (as `performance.now()` counts). An abort of `signal` ends the
 * tries with its reason.
 */
export async function persistently<T>(
  work: () => Promise<T>,
  deadline: number,
  signal?: AbortSignal,
): Promise<T> {
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(delayMs * 2, maxDelayMs)) {
    signal?.throwIfAborted();
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
      const waitMs = Math.max(delayMs, askedMs);
      if (!mayPass(error) || performance.now() + waitMs > deadline) throw error;
      await delay(waitMs, signal);
    }
  }
}

/** Whether an error is one of the moment: too fast, unreachable, or unknown. */
export function mayPass(error: unknown): boolean {
  return !isParleyError(error) || error.retryAfterMs !== undefined || error.code === "platform-unreachable";
}

/** Resolves after `ms` milliseconds, or at once when `signal` aborts. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done, { once: true });
  });
}
