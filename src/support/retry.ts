import type { Clock } from "../core/clock.ts";
import { sleep } from "./sleep.ts";

/** Policy of {@link retry}. */
export interface RetryOptions {
  /**
   * Decides after each failed attempt: milliseconds to wait before the next one, or `undefined` to give up.
   * `attempt` is 1 after the first failure. Called only while the signal has not aborted.
   */
  readonly delayMs: (error: unknown, attempt: number) => number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep"> | undefined;
}

/**
 * Calls `attempt` until it resolves or `delayMs` gives up.
 * @throws the error of the last attempt, or the reason of `signal` when it aborts
 */
export async function retry<T>(
  attempt: (attempt: number) => Promise<T>,
  { delayMs, signal, clock = { sleep } }: RetryOptions,
): Promise<T> {
  for (let count = 1; ; count++) {
    signal?.throwIfAborted();
    try {
      return await attempt(count);
    } catch (error) {
      signal?.throwIfAborted();
      const waitMs = delayMs(error, count);
      if (waitMs === undefined) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/** Exponential backoff: `baseMs` doubled with each attempt, at most `maxMs`. `attempt` is 1 after the first failure. */
export function backoffMs(
  attempt: number,
  limits: { readonly baseMs: number; readonly maxMs: number },
): number {
  return Math.min(limits.maxMs, limits.baseMs * 2 ** (attempt - 1));
}
