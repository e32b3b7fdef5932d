import { DefaultRestOptions, RESTEvents, type REST, type RESTOptions } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Meter, Log } from "../../../core/telemetry.ts";
import { systemClock } from "../../../support/clock.ts";
import {
  type LaneLimit,
  type Urgency,
  createDeliveryScheduler,
  type DeliveryCall,
  type DeliveryScheduler,
} from "../../delivery/delivery-scheduler.ts";
import { globalLane } from "../errors.ts";
import { snowflakeTime } from "../address.ts";

/** The names of the limits that requests count against. */
export const lanes = {
  /** Covers all routes, but not interactions. */
  global: globalLane,
  /** Covers typing in all channels, which must not take the room of answers. */
  allTyping: "typing",
  /** Covers reads that nobody waits for, which must not take the room of answers either. */
  lookUps: "look-ups",
  posts: (channelId: string) => `posts ${channelId}`,
  edits: (channelId: string) => `edits ${channelId}`,
  /** Covers edits of messages older than an hour, by channel or, where that is not known, by message. */
  oldEdits: (id: string) => `old-edits ${id}`,
  threads: (channelId: string) => `threads ${channelId}`,
  typing: (channelId: string) => `typing ${channelId}`,
  /** Covers the messages of one interaction. How many it takes is not known, only that it has refused one. */
  interaction: (token: string) => `interaction ${token}`,
} as const;

/** How many requests a second Discord allows a bot in total. It raises that for large bots. */
const usualRequestsPerSecond = 50;

/** Leaves some room for requests of the gateway's client, which are not scheduled. */
function toGlobalLimit(requestsPerSecond: number): LaneLimit {
  return { perWindow: Math.max(1, Math.floor(requestsPerSecond * 0.96)), windowMs: 1000 };
}

/** Look-ups are scheduled as previews, which use 21 of it. */
const lookUpLimit: LaneLimit = { perWindow: 30, windowMs: 1000 };
const typingLimit: LaneLimit = { perWindow: 8, windowMs: 1000 };
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

/** How long a request may wait without a deadline. A reply shows newer text instead of a late preview. */
const maxWaitMs: Readonly<Record<Urgency, number>> = {
  final: 60_000,
  preview: 1000,
};

/** Creates the scheduler of what is shown on Discord. */
export function createDiscordScheduler({
  meter,
  requestsPerSecond = usualRequestsPerSecond,
  clock = systemClock,
}: {
  readonly meter?: Meter | undefined;
  /** What Discord allows in total. */
  readonly requestsPerSecond?: number | undefined;
  readonly clock?: Clock;
}): DeliveryScheduler {
  const globalLimit = toGlobalLimit(requestsPerSecond);
  return createDeliveryScheduler({
    platform: "discord",
    limitOf(lane) {
      if (lane === lanes.global) return globalLimit;
      if (lane === lanes.allTyping) return typingLimit;
      if (lane === lanes.lookUps) return lookUpLimit;
      return channelLimits[lane.split(" ")[0] ?? ""];
    },
    clock,
    ...(meter === undefined ? {} : { meter }),
  });
}

/** How a request that shows something is sent. After `signal` has aborted, nothing is sent. */
export interface SendOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default "final". */
  readonly urgency?: Urgency;
  /** By when it must be sent, by {@link Clock.monotonic}. The default depends on the urgency. */
  readonly deadline?: number;
}

/**
 * Sends requests through the scheduler.
 * @throws ParleyError `platform-unreachable` with `retryAfterMs` where there is no room before the deadline
 */
interface Sending {
  /**
   * Sends a request that shows something and counts against these lanes. One that Discord refuses as too many
   * is sent again when there is room, until its deadline, except a preview.
   */
  show<T>(method: string, names: readonly string[], options: SendOptions, work: () => Promise<T>): Promise<T>;
  /**
   * Sends another request, which counts against the limit over all routes. The library waits for the limits
   * of its own route. `isPatient` means that nobody waits for it.
   */
  ask<T>(method: string, work: () => Promise<T>, isPatient?: boolean): Promise<T>;
}

export function createSending(scheduler: DeliveryScheduler, clock: Clock): Sending {
  return {
    async show(method, names, options, work) {
      const { signal, urgency = "final" } = options;
      const { deadline = clock.monotonic() + maxWaitMs[urgency] } = options;
      const call = { lanes: names, method, urgency, deadline, signal };
      for (;;) {
        try {
          return await scheduler.send(call, work);
        } catch (error) {
          const retryAfterMs = isParleyError(error) ? error.retryAfterMs : undefined;
          // The lane is closed until then, so that the next call waits there.
          if (retryAfterMs === undefined || urgency === "preview") throw error;
          if (clock.monotonic() + retryAfterMs > deadline) throw error;
        }
      }
    },
    async ask(method, work, isPatient = false) {
      const deadline = clock.monotonic() + maxWaitMs.final;
      const call: DeliveryCall = isPatient
        ? { lanes: [lanes.lookUps, lanes.global], method, urgency: "preview", deadline }
        : { lanes: [lanes.global], method, urgency: "final", deadline };
      const result = await scheduler.send(call, async () => {
        const [settled] = await Promise.allSettled([work()]);
        if (settled.status === "rejected" && isGlobalLimit(settled.reason)) throw settled.reason;
        return settled;
      });
      if (result.status === "rejected") throw result.reason;
      return result.value;
    },
  };
}

function isGlobalLimit(error: unknown): boolean {
  return isParleyError(error) && error.detail["lane"] === lanes.global;
}

/** A response that stops arriving is waited for twice as long as the library waits for its headers. */
const responseTimeoutMs = 2 * DefaultRestOptions.timeout;
/** The wait after a 429 that names no time. */
const bareLimitSeconds = 1;
/** So many refused requests are one line in the log. Discord bans an address for 10,000 in ten minutes. */
const refusalsPerWarning = 500;

/** The options of each `REST` of discord.js. */
export const requestOptions = {
  invalidRequestWarningInterval: refusalsPerWarning,
  /**
   * Sends a request with Node's `fetch`, whose forms the library fills. It gives every 429 a Retry-After: the
   * library reads nothing else and would send the request again at once.
   */
  async makeRequest(url, init) {
    const signals = [init.signal, AbortSignal.timeout(responseTimeoutMs)].filter(
      (one) => one instanceof AbortSignal,
    );
    const sent = fetch(url, { ...(init as object), signal: AbortSignal.any(signals) });
    // `fetch` hides what went wrong behind an error of its own.
    const response = await sent.catch((error: unknown) => {
      throw (error as Error).cause ?? error;
    });
    if (response.status !== 429 || toSeconds(response.headers.get("retry-after")) !== undefined)
      return response;
    const body = await response.text();
    const headers = new Headers(response.headers);
    headers.set("retry-after", String(readRetryAfter(body) ?? bareLimitSeconds));
    return new Response(body, { status: response.status, headers });
  },
} satisfies Partial<RESTOptions>;

/** Says in the log when Discord refuses many requests. */
export function warnOfRefusals(rest: REST, log: Log): void {
  rest.on(RESTEvents.InvalidRequestWarning, ({ count, remainingTime }) =>
    log.warn(
      { invalidRequests: count, remainingMs: remainingTime },
      "Discord refuses many requests, and bans an address for 10,000 in ten minutes",
    ),
  );
}

function readRetryAfter(body: string): number | undefined {
  try {
    const { retry_after: seconds } = JSON.parse(body) as { readonly retry_after?: unknown };
    return toSeconds(seconds);
  } catch {
    // Cloudflare's pages are not JSON.
    return undefined;
  }
}

/** Returns `undefined` where the value is no time to wait. */
function toSeconds(given: unknown): number | undefined {
  const seconds = given === "" || given === null || given === undefined ? Number.NaN : Number(given);
  return seconds > 0 && Number.isFinite(seconds) ? seconds : undefined;
}
