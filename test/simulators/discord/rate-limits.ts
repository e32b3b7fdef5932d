import { createHash } from "node:crypto";

/** How many requests a bucket allows in a window of time. */
export interface RateLimit {
  readonly limit: number;
  readonly windowMs: number;
}

/** The limits of each kind of request. */
export interface RateLimitOptions {
  /** The limit of posts in one channel. */
  readonly messages: RateLimit;
  /** The limit of edits in one channel. */
  readonly edits: RateLimit;
  /** The limit of follow-ups and edits with one interaction's token. */
  readonly webhooks: RateLimit;
  /** The limit of typing indicators in one channel. */
  readonly typing: RateLimit;
  /** The limit of new threads in one channel. No header announces it. Its Retry-After can be minutes. */
  readonly threads: RateLimit;
  /** The limit of edits of messages older than an hour. No header announces it. Its 429 has its own code. */
  readonly oldEdits: RateLimit;
  /** The limit of newly opened direct messages. No header announces it, and its error is no 429. */
  readonly directMessages: RateLimit;
  /** The limit of everything else, by route and channel. */
  readonly others: RateLimit;
  /** The limit of all routes with the bot's token together. Interactions are exempt. */
  readonly globalPerSecond: number;
  /** How many 401, 403 and 429 in ten minutes ban the address. Those of shared limits do not count. */
  readonly invalidRequests: number;
}

/** Limits like Discord's. */
export const platformRateLimits: RateLimitOptions = {
  messages: { limit: 5, windowMs: 5000 },
  edits: { limit: 5, windowMs: 5000 },
  webhooks: { limit: 5, windowMs: 2000 },
  typing: { limit: 5, windowMs: 5000 },
  threads: { limit: 50, windowMs: 300_000 },
  // Discord publishes neither number. These are what bots have met.
  oldEdits: { limit: 3, windowMs: 20_000 },
  directMessages: { limit: 25, windowMs: 600_000 },
  others: { limit: 10, windowMs: 5000 },
  globalPerSecond: 50,
  invalidRequests: 10_000,
};

/** Returns limits like Discord's for time that passes `factor` times as fast. */
export function fasterRateLimits(factor: number): RateLimitOptions {
  const { globalPerSecond, invalidRequests, ...windows } = platformRateLimits;
  const faster = Object.entries(windows).map(([name, { limit, windowMs }]) => [
    name,
    { limit, windowMs: windowMs / factor },
  ]);
  return {
    ...(Object.fromEntries(faster) as typeof windows),
    globalPerSecond: globalPerSecond * factor,
    invalidRequests,
  };
}

/** Whether a request is within its limits, with the headers that say so. */
export interface RateVerdict {
  readonly headers: Readonly<Record<string, string>>;
  /** Present if the request is rate limited. */
  readonly retryAfterMs?: number;
  readonly scope?: "user" | "global" | "shared";
  /** Discord's JSON error code, if the limit has one. */
  readonly code?: number;
}

/** What the limits count. */
export interface CountedRequest {
  readonly method: string;
  readonly template: string;
  /** The channel, server or token in its path. */
  readonly major: string;
  readonly isExempt: boolean;
  /** Whether it edits a message older than an hour. */
  readonly isOldEdit: boolean;
}

/** Creates a counter of requests. @param now milliseconds in the time that the client waits in */
export function createRateLimiter(
  options: RateLimitOptions,
  now: () => number = () => performance.now(),
): {
  take(request: CountedRequest): RateVerdict;
  /** Whether direct messages may be opened with one more person now. */
  mayOpenDirectMessages(): boolean;
} {
  const buckets = new Map<string, { count: number; resetAt: number }>();
  const takeFrom = (key: string, limit: RateLimit) => {
    const at = now();
    let bucket = buckets.get(key);
    if (bucket === undefined || bucket.resetAt <= at) {
      bucket = { count: 0, resetAt: at + limit.windowMs };
      buckets.set(key, bucket);
    }
    const isOver = bucket.count >= limit.limit;
    if (!isOver) bucket.count += 1;
    return { isOver, remaining: limit.limit - bucket.count, resetAfterMs: bucket.resetAt - at };
  };
  return {
    mayOpenDirectMessages: () => !takeFrom("direct messages", options.directMessages).isOver,
    take({ method, template, major, isExempt, isOldEdit }) {
      if (!isExempt) {
        const global = takeFrom("global", { limit: options.globalPerSecond, windowMs: 1000 });
        if (global.isOver) return { headers: {}, retryAfterMs: global.resetAfterMs, scope: "global" };
      }
      if (template.startsWith("/interactions/")) return { headers: {} };
      const limit = limitOf(options, method, template);
      const taken = takeFrom(`${method} ${template} ${major}`, limit);
      const headers = {
        "x-ratelimit-limit": String(limit.limit),
        "x-ratelimit-remaining": String(taken.isOver ? 0 : taken.remaining),
        "x-ratelimit-reset": ((Date.now() + taken.resetAfterMs) / 1000).toFixed(3),
        "x-ratelimit-reset-after": (taken.resetAfterMs / 1000).toFixed(3),
        "x-ratelimit-bucket": createHash("md5").update(`${method} ${template}`).digest("hex"),
      };
      if (taken.isOver) return { headers, retryAfterMs: taken.resetAfterMs, scope: "user" };
      if (isOldEdit) {
        const old = takeFrom(`old edits ${major}`, options.oldEdits);
        return old.isOver
          ? { headers, retryAfterMs: old.resetAfterMs, scope: "user", code: 30046 }
          : { headers };
      }
      if (!isThreadCreation(method, template)) return { headers };
      const hidden = takeFrom(`threads ${major}`, options.threads);
      return hidden.isOver ? { headers, retryAfterMs: hidden.resetAfterMs, scope: "shared" } : { headers };
    },
  };
}

function limitOf(options: RateLimitOptions, method: string, template: string): RateLimit {
  if (template.startsWith("/webhooks/")) return options.webhooks;
  if (template === "/channels/{channel_id}/messages" && method === "POST") return options.messages;
  if (template === "/channels/{channel_id}/messages/{message_id}" && method === "PATCH") return options.edits;
  if (template === "/channels/{channel_id}/typing") return options.typing;
  return options.others;
}

function isThreadCreation(method: string, template: string): boolean {
  return method === "POST" && template.endsWith("/threads");
}

const invalidWindowMs = 600_000;

/** Counts the invalid requests of the last ten minutes. @param now Discord's clock, in Unix milliseconds */
export function createInvalidRequests(limit: number, now: () => number) {
  let times: number[] = [];
  const count = (): number => {
    times = times.filter((time) => time > now() - invalidWindowMs);
    return times.length;
  };
  return {
    count,
    isBanned: () => count() >= limit,
    note(status: number, scope?: string) {
      if ([401, 403, 429].includes(status) && scope !== "shared") times.push(now());
    },
  };
}
