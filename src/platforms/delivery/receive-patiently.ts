import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { systemClock } from "../../support/clock.ts";

const backoff = { baseMs: 250, maxMs: 1000 };

/** How long {@link receivePatiently} tries. */
export interface PatienceOptions {
  readonly forMs: number;
  readonly whileUnreachableForMs?: number;
  readonly signal?: AbortSignal;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}

/**
 * Passes an event to the receiver, and again while the store is unavailable: attempts start within `forMs`
 * milliseconds. There are at least two: the deadline of the first may have ended while the process was suspended.
 * `whileUnreachableForMs`: the same while the platform, which is asked about the event first, is unreachable or limits
 * the bot; default 0.
 * @throws the error of the last attempt, or the reason of the signal
 */
export function receivePatiently(
  receive: () => Promise<"accepted" | "duplicate">,
  { forMs, whileUnreachableForMs = 0, signal, clock = systemClock }: PatienceOptions,
): Promise<"accepted" | "duplicate"> {
  const startedAt = clock.monotonic();
  return retry(receive, {
    signal,
    clock,
    delayMs(error, attempt) {
      const waitMs = backoffMs(attempt, backoff);
      const passedMs = clock.monotonic() - startedAt;
      if (isParleyError(error, "store-unavailable"))
        return attempt === 1 || passedMs + waitMs <= forMs ? waitMs : undefined;
      if (!isParleyError(error, "platform-unreachable")) return undefined;
      const longerMs = Math.max(waitMs, error.retryAfterMs ?? 0);
      return passedMs + longerMs <= whileUnreachableForMs ? longerMs : undefined;
    },
  });
}

/** Of the store or of the platform: what failed may succeed later. */
export function isOutage(error: unknown): boolean {
  return isParleyError(error, "store-unavailable") || isParleyError(error, "platform-unreachable");
}
