import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import type { MakeRequest } from "./http-agent.ts";
import { toResponse } from "./to-response.ts";

/** Discord bans an address for 10,000 in ten minutes, those of other processes there included. */
const windowMs = 600_000;
/** How long a route that was refused is not asked again, once there are many refusals. */
const refusedForMs = 60_000;
const maxRoutes = 1000;

/** Numbers of invalid requests in ten minutes. */
export interface InvalidRequestLimits {
  /** From here on a refused route is not asked again for a minute. */
  readonly slow: number;
  /** From here on nothing but responses to interactions is sent. */
  readonly stop: number;
}

const defaultLimits: InvalidRequestLimits = { slow: 1000, stop: 5000 };

/** Wraps the way in which requests are sent. All that are wrapped by one guard are counted together. */
export type RequestGuard = (makeRequest: MakeRequest) => MakeRequest;

interface Refusal {
  readonly at: number;
  readonly status: number;
  readonly body: string;
}

/**
 * Counts the 401, 403 and 429 of ten minutes and keeps them far below the number that Discord bans an address for: first
 * refused routes of a channel are answered from memory, then requests are limited here until older ones are over.
 * @see https://docs.discord.com/developers/topics/rate-limits#invalid-request-limit-aka-cloudflare-bans
 */
export function createInvalidRequestGuard(options: {
  readonly log: Log;
  readonly limits?: InvalidRequestLimits;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}): RequestGuard {
  const { log, limits = defaultLimits, clock = systemClock } = options;
  const now = (): number => clock.monotonic();
  const refused = new LRUCache<string, Refusal>({ max: maxRoutes });
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

/** As Discord limits a route for everybody: nothing else is to be learned from it. */
function limited(waitMs: number): Response {
  const seconds = (Math.max(1, waitMs) / 1000).toFixed(3);
  const body = JSON.stringify({ message: "limited by Parley", retry_after: Number(seconds), global: false });
  return toResponse(429, body, new Headers({ "retry-after": seconds, "x-ratelimit-scope": "shared" }));
}
