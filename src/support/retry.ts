import type { Clock } from "../core/clock.ts";
import { systemClock } from "./clock.ts";

/** Policy of {@link retry}. */
interface RetryOptions {
  /**
   * Decides after each failed attempt: milliseconds to wait before the next one, or `undefined` to give up.
   * `attempt` is 1 after the first failure. Called only while the signal has not aborted.
   */
  readonly delayMs: (error: unknown, attempt: number) => number | undefined;
  /** By {@link Clock.monotonic}: no attempt but the first begins later. Default: none. */
  readonly deadline?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep" | "monotonic"> | undefined;
}

/**
 * Calls `attempt` until it resolves, `delayMs` gives up, or the next one would begin after the deadline.
 * @throws the error of the last attempt, or the reason of `signal` when it aborts
 */
export async function retry<T>(
  attempt: (attempt: number) => Promise<T>,
  { delayMs, deadline = Infinity, signal, clock = systemClock }: RetryOptions,
): Promise<T> {
  for (let count = 1; ; count++) {
    signal?.throwIfAborted();
    try {
      return await attempt(count);
    } catch (error) {
      signal?.throwIfAborted();
      const waitMs = delayMs(error, count);
      if (waitMs === undefined || clock.monotonic() + waitMs > deadline) throw error;
      await clock.sleep(waitMs, signal);
    }
  }
}

/** Bounds of {@link backoffMs}, by what failed. */
export const backoffs = {
  /** Another writer was faster. */
  collision: { baseMs: 5, maxMs: 200 },
  /** The store, or another server of the operator's own, which is mostly back after a moment. */
  moment: { baseMs: 50, maxMs: 500 },
  /** A service that many use, or many calls that wait for the same one. */
  shared: { baseMs: 500, maxMs: 10_000 },
  /** What may be away for hours, such as a platform. */
  outage: { baseMs: 1000, maxMs: 60_000 },
} as const;

/** Exponential backoff: `baseMs` doubled with each attempt, at most `maxMs`. `attempt` is 1 after the first failure. */
export function backoffMs(
  attempt: number,
  limits: { readonly baseMs: number; readonly maxMs: number },
): number {
  return Math.min(limits.maxMs, limits.baseMs * 2 ** (attempt - 1));
}
