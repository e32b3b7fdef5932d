import { type ResponseLike, DefaultRestOptions, type RESTOptions } from "discord.js";
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
  type Reservation,
  type SuspensionWatch,
} from "../../delivery/delivery-scheduler.ts";
import { globalLane } from "../errors.ts";
import { snowflakeTime } from "../address.ts";
import { createRecent } from "../../../support/recent.ts";

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

/** Whether a message is so old that Discord takes few edits of it. @param now Discord's time, in Unix ms */
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
  suspensions,
  clock = systemClock,
}: {
  readonly meter?: Meter | undefined;
  /** What Discord allows in total. */
  readonly requestsPerSecond?: number | undefined;
  readonly suspensions?: Pick<SuspensionWatch, "waitMs">;
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
    suspensions,
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
  /** Capacity that was reserved for this request. */
  readonly reservation?: Reservation | undefined;
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
      const { signal, urgency = "final", reservation } = options;
      const { deadline = clock.monotonic() + maxWaitMs[urgency] } = options;
      const call = { lanes: names, method, urgency, deadline, signal, reservation };
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

/** How the `REST` of discord.js sends a request. */
type MakeRequest = RESTOptions["makeRequest"];

/** A body that stops arriving is waited for as long as the library waits for a response. */
const bodyTimeoutMs = DefaultRestOptions.timeout;

/**
 * Sends a request as the library does, with two differences. The library's timeout ends with the headers, and
 * undici's timeout for the body is five minutes. Its forms belong to Node.js's own undici, and the library's
 * undici sends these only through a dispatcher that all versions in a process share. So Node.js writes the
 * form.
 */
const makeLibraryRequest: MakeRequest = async (url, init) => {
  const { body } = init;
  if (!(body instanceof FormData))
    return DefaultRestOptions.makeRequest(url, { ...init, bodyTimeout: bodyTimeoutMs } as typeof init);
  const form = new Response(body);
  // The library passes a plain object.
  const headers = {
    ...(init.headers as Record<string, string>),
    "content-type": form.headers.get("content-type") ?? "",
  };
  return DefaultRestOptions.makeRequest(url, {
    ...init,
    headers,
    body: await form.bytes(),
    bodyTimeout: bodyTimeoutMs,
  } as typeof init);
};

/** Makes a response with this body in place of one that was read: a response cannot be read twice. */
function toResponse(status: number, body: string, from: ResponseLike["headers"] = new Headers()): Response {
  // The body is already decoded.
  const headers = new Headers([...from].filter(([name]) => !/^content-(encoding|length)$/i.test(name)));
  if (!headers.has("content-type")) headers.set("content-type", "application/json");
  return new Response(body, { status, headers });
}

/** The wait after a 429 that names no time. */
const bareLimitSeconds = 1;

/**
 * Gives every 429 a Retry-After. Where it is absent or empty (as from Cloudflare), the library would send the
 * request again at once, for ever. It is taken from the body where that has one. Otherwise it is one second.
 */
export function createMakeRequest(guard: RequestGuard = (makeRequest) => makeRequest): MakeRequest {
  const makeRequest = guard(makeLibraryRequest);
  return async (url, init) => {
    const response = await makeRequest(url, init);
    if (response.status !== 429) return response;
    if (toSeconds(response.headers.get("retry-after")) !== undefined) return response;
    // The library does not read the body of a 429.
    const body = await response.text();
    const seconds = readRetryAfter(body) ?? bareLimitSeconds;
    const limited = toResponse(response.status, body, response.headers);
    limited.headers.set("retry-after", String(seconds));
    return limited;
  };
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

/** Discord bans an address for 10,000 in ten minutes. Other processes there count too. */
const windowMs = 600_000;
/** How long a refused route is not asked again, once there are many refusals. */
const refusedForMs = 60_000;
const maxRoutes = 1000;

/** Limits of the invalid requests in ten minutes. */
interface InvalidRequestLimits {
  /** From this number on, a refused route is not asked again for a minute. */
  readonly slow: number;
  /** From this number on, only responses to interactions are sent. */
  readonly stop: number;
}

const defaultLimits: InvalidRequestLimits = { slow: 1000, stop: 5000 };

/** Wraps the way in which requests are sent. One guard counts all requests that it wraps together. */
export type RequestGuard = (makeRequest: MakeRequest) => MakeRequest;

interface Refusal {
  readonly at: number;
  readonly status: number;
  readonly body: string;
}

/**
 * Counts the 401, 403 and 429 of ten minutes and keeps them far below the number that Discord bans an address
 * for. At first, refused routes of a channel are answered from memory. Later, requests are limited here until
 * older ones are over.
 * @see https://docs.discord.com/developers/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans
 */
export function createInvalidRequestGuard(options: {
  readonly log: Log;
  readonly limits?: InvalidRequestLimits;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}): RequestGuard {
  const { log, limits = defaultLimits, clock = systemClock } = options;
  const now = (): number => clock.monotonic();
  const refused = createRecent<Refusal>(maxRoutes);
  let times: number[] = [];
  const warnedAt = { slow: Number.NEGATIVE_INFINITY, stop: Number.NEGATIVE_INFINITY };

  function count(): number {
    const from = now() - windowMs;
    const first = times.findIndex((time) => time > from);
    if (first !== 0) times = first === -1 ? [] : times.slice(first);
    return times.length;
  }

  function warn(kind: keyof typeof warnedAt, route: string): void {
    if (now() - warnedAt[kind] < windowMs) return;
    warnedAt[kind] = now();
    const fields = { invalidRequests: times.length, lastRoute: route };
    if (kind === "slow") log.warn(fields, "Discord refuses many requests: refused ones are not repeated");
    else log.error(fields, "Discord refuses so many requests that it may ban this address: few are sent now");
  }

  function note(route: string, refusal: Refusal): void {
    times.push(refusal.at);
    if (refusal.status !== 429) refused.set(route, refusal);
    if (times.length >= limits.slow) warn("slow", route);
    if (times.length >= limits.stop) warn("stop", route);
  }

  return (makeRequest) => async (url, init) => {
    const { pathname } = new URL(url);
    // They have a deadline of three seconds, and are never refused in these ways.
    if (/\/interactions\/\d+\//.test(pathname)) return makeRequest(url, init);
    // Permissions are those of a channel, whatever the message.
    const route = `${init.method ?? "GET"} ${pathname.replace(/\/messages\/\d+/, "/messages/:id")}`;
    const current = count();
    if (current >= limits.stop) return limited((times[current - limits.stop] ?? now()) + windowMs - now());
    const before = refused.get(route);
    if (current >= limits.slow && before !== undefined && now() - before.at < refusedForMs)
      return toResponse(before.status, before.body);
    const response = await makeRequest(url, init);
    const { status, headers } = response;
    const isInvalid = [401, 403, 429].includes(status) && headers.get("x-ratelimit-scope") !== "shared";
    if (!isInvalid) {
      if (response.ok) refused.delete(route);
      return response;
    }
    const body = await response.text();
    note(pathname.includes("/webhooks/") ? "interaction" : route, { at: now(), status, body });
    return toResponse(status, body, headers);
  };
}

/** Makes a response like a shared limit of Discord, so that the library learns nothing else from it. */
function limited(waitMs: number): Response {
  const seconds = (Math.max(1, waitMs) / 1000).toFixed(3);
  const body = JSON.stringify({ message: "limited by Parley", retry_after: Number(seconds), global: false });
  return toResponse(429, body, new Headers({ "retry-after": seconds, "x-ratelimit-scope": "shared" }));
}

/**
 * Tells Discord's time in Unix milliseconds, exact to a second. Ids of messages and the expiry of tokens are
 * compared with it, because the clock of this machine may be wrong or step. Before the first response it is
 * the given clock's time.
 */
export interface DiscordClock {
  now(): number;
  /** Reads the time of a response. */
  readonly observe: (response: Pick<ResponseLike, "headers">) => void;
}

export function createDiscordClock(clock: Clock = systemClock): DiscordClock {
  /** Discord's time when {@link Clock.monotonic} was 0. */
  let originMs: number | undefined;
  return {
    now: () => (originMs === undefined ? clock.now() : Math.round(originMs + clock.monotonic())),
    observe({ headers }) {
      const time = Date.parse(headers.get("date") ?? "");
      if (!Number.isNaN(time)) originMs = time - clock.monotonic();
    },
  };
}
