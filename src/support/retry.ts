import type { Clock } from "../core/clock.ts";
import { systemClock } from "./clock.ts";

/** The policy of {@link retry}. */
interface RetryOptions {
  /**
   * Called after each failed attempt while the signal has not aborted. It returns the milliseconds to wait
   * before the next one, or `undefined` to give up. `attempt` is 1 after the first failure.
   */
  readonly delayMs: (error: unknown, attempt: number) => number | undefined;
  /** The latest {@link Clock.monotonic} time at which a further attempt may begin. Default: none. */
  readonly deadline?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "sleep" | "monotonic"> | undefined;
}

/**
 * Calls `attempt` until it resolves, `delayMs` gives up, or the next attempt would begin after the deadline.
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

/** The limits of {@link backoffMs} for kinds of failures. */
export const backoffs = {
  /** Another writer was faster. */
  collision: { baseMs: 5, maxMs: 200 },
  /** The store or another server of the operator failed, which usually recovers in a moment. */
  moment: { baseMs: 50, maxMs: 500 },
  /** A turn met an outage, and runs again. */
  again: { baseMs: 500, maxMs: 4000 },
  /** The service has many users, or many calls wait for the same one. */
  shared: { baseMs: 500, maxMs: 10_000 },
  /** Something such as a platform may be unreachable for hours. */
  outage: { baseMs: 1000, maxMs: 60_000 },
} as const;

/** Exponential backoff: `baseMs` doubles with each attempt up to `maxMs`. The first `attempt` is 1. */
export function backoffMs(
  attempt: number,
  limits: { readonly baseMs: number; readonly maxMs: number },
): number {
  return Math.min(limits.maxMs, limits.baseMs * 2 ** (attempt - 1));
}
