import type { Clock } from "../../core/clock.ts";
import { isCausedByPeople, isParleyError, type ParleyError } from "../../core/errors.ts";
import { createRareLog, type Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import { createRecent } from "../../support/recent.ts";

/** How long {@link receivePatiently} tries. */
interface PatienceOptions {
  readonly forMs: number;
  readonly whileUnreachableForMs?: number;
  readonly signal?: AbortSignal;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

/**
 * Passes an event to the receiver, and again while the store is unavailable. Attempts start within `forMs`
 * milliseconds. There are at least two, since the deadline of the first may have ended while the process was
 * suspended. `whileUnreachableForMs` limits attempts while the platform, which is asked about the event
 * first, is unreachable or limits the bot. Its default is 0.
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
      const waitMs = backoffMs(attempt, backoffs.moment);
      const passedMs = clock.monotonic() - startedAt;
      if (isParleyError(error, "store-unavailable"))
        return attempt === 1 || passedMs + waitMs <= forMs ? waitMs : undefined;
      if (!isParleyError(error, "platform-unreachable")) return undefined;
      const longerMs = Math.max(waitMs, error.retryAfterMs ?? 0);
      return passedMs + longerMs <= whileUnreachableForMs ? longerMs : undefined;
    },
  });
}

/** Whether the store or the platform is unavailable, so that the same may succeed later. */
export function isOutage(error: unknown): boolean {
  return isParleyError(error, "store-unavailable") || isParleyError(error, "platform-unreachable");
}

/**
 * Creates the log of events that are not accepted. What people cause is no error, and of each reason there is
 * a line a minute.
 */
export function createNotAcceptedLog(log: Log, clock: Pick<Clock, "monotonic"> = systemClock) {
  const logRarely = createRareLog(log, () => clock.monotonic(), "info");
  return (what: "message" | "command", fields: Readonly<Record<string, unknown>>, error: unknown): void => {
    if (isCausedByPeople(error))
      logRarely(`${what} ${error.code}`, { ...fields, code: error.code }, `${what} refused`);
    else log.error({ ...fields, err: error }, `${what} not accepted`);
  };
}

const maxEntries = 5000;
/** Over a limit, a person is told again when it is free again, within these bounds. */
const limitMs = { min: 30_000, max: 10 * 60_000 };

/**
 * Decides when people who are refused again and again are told so again. It remembers the last 5,000
 * refusals.
 * @param now milliseconds on a steady clock
 */
export function createRefusalSchedule(now: () => number) {
  const nextAt = createRecent<number>(maxEntries);

  function intervalMs({ code, retryAfterMs = limitMs.min }: ParleyError, accessIntervalMs: number): number {
    if (code === "access-denied") return accessIntervalMs;
    return Math.min(Math.max(retryAfterMs, limitMs.min), limitMs.max);
  }

  const keyOf = ({ code }: ParleyError, who: string): string => `${code} ${who}`;

  return {
    /**
     * Whether to tell it now. If so, it notes that it is told. Each reason counts separately.
     * @param who the person and the place
     * @param accessIntervalMs how long a refusal by the access rules is not repeated
     */
    isDue(error: ParleyError, who: string, accessIntervalMs: number): boolean {
      const key = keyOf(error, who);
      const time = now();
      if (time < (nextAt.get(key) ?? 0)) return false;
      nextAt.set(key, time + intervalMs(error, accessIntervalMs));
      return true;
    },
    /** Notes that it could not be told, so that it is due again. */
    untold(error: ParleyError, who: string): void {
      nextAt.delete(keyOf(error, who));
    },
  };
}

/**
 * Repeats a platform call until it succeeds: after the platform's Retry-After where it names one, and half
 * a second at least, else with exponential backoff. Permanent errors (missing permission, rejected content,
 * no store) are thrown at once. Transient ones are thrown when the next attempt would start after
 * `deadline` (by {@link Clock.monotonic}).
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
    deadline,
    delayMs(error, attempt) {
      const askedMs = isParleyError(error) ? error.retryAfterMs : undefined;
      if (askedMs !== undefined) return Math.max(backoffs.shared.baseMs, askedMs);
      return isTransient(error) ? backoffMs(attempt, backoffs.shared) : undefined;
    },
  });
}

/** Whether the same call may succeed later, as with rate limits, outages and unknown errors. */
export function isTransient(error: unknown): boolean {
  return !isParleyError(error) || error.retryAfterMs !== undefined || error.code === "platform-unreachable";
}
