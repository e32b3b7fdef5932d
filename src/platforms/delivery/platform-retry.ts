import { isParleyError } from "../../core/errors.ts";
import { backoffMs, retry } from "../../support/retry.ts";

const backoff = { baseMs: 500, maxMs: 10_000 };

/**
 * Repeats a platform call until it succeeds, with exponential backoff and at least the platform's Retry-After.
 * Permanent errors (missing permission, rejected content, no store) are thrown at once, transient ones when the next
 * attempt would start after `deadline` (on the clock of `performance.now()`).
 * @throws the last error, or the reason of `signal` when it aborts
 */
export function retryPlatformCall<T>(
  call: () => Promise<T>,
  deadline: number,
  signal?: AbortSignal,
): Promise<T> {
  return retry(call, {
    signal,
    delayMs(error, attempt) {
      const askedMs = isParleyError(error) ? (error.retryAfterMs ?? 0) : 0;
      const waitMs = Math.max(backoffMs(attempt, backoff), askedMs);
      return isTransient(error) && performance.now() + waitMs <= deadline ? waitMs : undefined;
    },
  });
}

/** Whether the same call may succeed later: rate limited, unreachable, or an unknown error. */
export function isTransient(error: unknown): boolean {
  return !isParleyError(error) || error.retryAfterMs !== undefined || error.code === "platform-unreachable";
}
