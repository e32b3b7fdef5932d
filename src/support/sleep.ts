import type { Clock } from "../core/clock.ts";

/**
 * Resolves after `ms` milliseconds.
 * @throws the reason of `signal` when it aborts first
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Like {@link sleep}, but also resolves when `signal` aborts. Never rejects.
 * @param clock default: the time of this process
 */
export async function sleepUnlessAborted(
  ms: number,
  signal: AbortSignal,
  clock: Pick<Clock, "sleep"> = { sleep },
): Promise<void> {
  await Promise.allSettled([clock.sleep(ms, signal)]);
}
