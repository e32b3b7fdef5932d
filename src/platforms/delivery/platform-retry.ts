import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { systemClock } from "../../support/clock.ts";

const backoff = { baseMs: 500, maxMs: 10_000 };

/**
 * Repeats a platform call until it succeeds, with exponential backoff and at least the platform's Retry-After.
 * Permanent errors (missing permission, rejected content, no store) are thrown at once, transient ones when the next
 * attempt would start after `deadline` (by {@link Clock.monotonic}).
 * @param clock default: the time of this process
 * @throws the last error, or the reason of `signal` when it aborts
 */
export function retryPlatformCall<T>(
  call: () => Promise<T>,
  deadline: number,
  signal?: AbortSignal,
  clock: Clock = systemClock,
): Promise<T> {
  return retry(call, {
    signal,
    clock,
    delayMs(error, attempt) {
      const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
      const waitMs = Math.max(backoffMs(attempt, backoff), askedMs);
      return isTransient(error) && clock.monotonic() + waitMs <= deadline ? waitMs : undefined;
    },
  });
}

/** Whether the same call may succeed later: rate limited, unreachable, or an unknown error. */
export function isTransient(error: unknown): boolean {
  return !isParleyError(error) || error.retryAfterMs !== undefined || error.code === "platform-unreachable";
}
