import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Meter } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import { backoffMs, retry } from "../../../support/retry.ts";
import { createLimits, type LaneLimit, type Limits, type Urgency } from "../../delivery/limits.ts";
import { globalLane, toParleyError } from "../errors.ts";
import { snowflakeTime } from "../address.ts";

/** The names of the limits that requests count against. */
export const lanes = {
  /** Covers all routes, but not interactions. */
  global: globalLane,
  posts: (channelId: string) => `posts ${channelId}`,
  edits: (channelId: string) => `edits ${channelId}`,
  /** Covers edits of messages older than an hour, by channel or, where that is not known, by message. */
  oldEdits: (id: string) => `old-edits ${id}`,
  threads: (channelId: string) => `threads ${channelId}`,
  typing: (channelId: string) => `typing ${channelId}`,
  /** Covers other requests of one kind in one place. Only Discord's headers say how many it takes. */
  others: (method: string, place: string) => `${method} ${place}`,
  /** Covers the messages of one interaction. How many it takes is not known, only that it has refused one. */
  interaction: (token: string) => `interaction ${token}`,
} as const;

/** How many requests a second Discord allows a bot in total. It raises that for large bots. */
const usualRequestsPerSecond = 50;

/** Leaves some room for requests of the gateway's client, which are not scheduled. */
function toGlobalLimit(requestsPerSecond: number): LaneLimit {
  return { perWindow: Math.max(1, Math.floor(requestsPerSecond * 0.96)), windowMs: 1000 };
}

/**
 * These match Discord's headers. The library reads those of each response too, and refuses a request of which
 * they say that Discord would refuse it.
 */
const channelLimits: Readonly<Record<string, LaneLimit>> = {
  posts: { perWindow: 5, windowMs: 5000 },
  edits: { perWindow: 5, windowMs: 5000 },
  // This limit is not published and in no header. It is what other bots have met.
  "old-edits": { perWindow: 3, windowMs: 20_000 },
  threads: { perWindow: 10, windowMs: 5000 },
  typing: { perWindow: 5, windowMs: 5000 },
};

const oldMs = 3_600_000;

/** Whether a message is so old that Discord takes few edits of it. @param now Unix milliseconds */
export function isOldMessage(messageId: string, now: number): boolean {
  return /^\d+$/.test(messageId) && now - snowflakeTime(messageId) > oldMs;
}

/** How long a request may wait without a deadline. Later than that a reply shows newer text instead. */
const maxWaitMs: Readonly<Record<Urgency, number>> = { final: 120_000, first: 1000, growth: 1000 };

/** Creates the limits of what is sent to Discord. */
export function createDiscordLimits({
  meter,
  requestsPerSecond = usualRequestsPerSecond,
  clock = systemClock,
}: {
  readonly meter?: Meter | undefined;
  /** What Discord allows in total. */
  readonly requestsPerSecond?: number | undefined;
  readonly clock?: Clock;
}): Limits {
  const globalLimit = toGlobalLimit(requestsPerSecond);
  return createLimits({
    platform: "discord",
    limitOf(lane) {
      if (lane === lanes.global) return globalLimit;
      return channelLimits[lane.split(" ")[0] ?? ""];
    },
    clock,
    ...(meter === undefined ? {} : { meter }),
  });
}

/** How a request is sent. After `signal` has aborted, nothing is sent. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** A request that still waits for room is not sent any more when this aborts. */
  readonly leaves?: AbortSignal | undefined;
  /** Default "final". */
  readonly urgency?: Urgency;
  /** By when it must be sent, by {@link Clock.monotonic}. The default depends on the urgency. */
  readonly deadline?: number;
}

/** One request to Discord. */
interface DiscordRequest {
  /** The name of its kind, for metrics. */
  readonly method: string;
  /** What failed where it fails, for the log. */
  readonly action: string;
  /** The limits it counts against, the most specific first. */
  readonly lanes: readonly string[];
  /** Whether it is sent again where a response is lost: a read, or a post with a nonce. */
  readonly isRepeatable?: boolean;
  /** Whether one that is not final is sent again too where Discord refuses it as too many. */
  readonly isPatient?: boolean;
}

const maxRepeats = 3;
export const repeatBackoff = { baseMs: 100, maxMs: 400 };

/**
 * Returns what sends a request in its lanes. A final one that Discord refuses as too many is sent again when
 * there is room, until its deadline.
 * @throws ParleyError without tokens and user text: `platform-unreachable` with `retryAfterMs` where there is
 *   no room before the deadline
 */
export function createSending(limits: Limits, clock: Clock) {
  return async <T>(
    { method, action, lanes: its, isRepeatable = false, isPatient = false }: DiscordRequest,
    request: () => Promise<unknown>,
    { signal, leaves, urgency = "final", deadline: given }: SendOptions = {},
  ): Promise<T> => {
    const deadline = given ?? clock.monotonic() + maxWaitMs[isPatient ? "final" : urgency];
    const waits = { signal: toSignal(signal, leaves), deadline };
    const once = (): Promise<T> => translated(action, request);
    const delayMs = (error: unknown, attempt: number): number | undefined =>
      isLost(error) && attempt <= maxRepeats ? backoffMs(attempt, repeatBackoff) : undefined;
    const work = isRepeatable ? () => retry(once, { signal, clock, delayMs }) : once;
    for (;;) {
      try {
        return await limits.send({ lanes: its, method, urgency, ...waits }, work);
      } catch (error) {
        const retryAfterMs = isParleyError(error) ? error.retryAfterMs : undefined;
        // The lane is closed until then, so that the next call waits there.
        if (retryAfterMs === undefined || (urgency !== "final" && !isPatient)) throw error;
        if (clock.monotonic() + retryAfterMs > deadline) throw error;
      }
    }
  };
}

function toSignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal | undefined {
  const given = signals.filter((one) => one !== undefined);
  return given.length > 1 ? AbortSignal.any(given) : given[0];
}

/** Makes a request, whose failure is a ParleyError. */
export async function translated<T>(action: string, request: () => Promise<unknown>): Promise<T> {
  try {
    return (await request()) as T;
  } catch (error) {
    throw toParleyError(error, action);
  }
}

/** Whether Discord may have got a request whose response was lost. */
export function isLost(error: unknown): boolean {
  return isParleyError(error, "platform-unreachable") && error.retryAfterMs === undefined;
}
