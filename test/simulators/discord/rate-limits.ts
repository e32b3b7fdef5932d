import { createHash } from "node:crypto";

/** A bucket's limit of requests in a window. */
export interface RateLimit {
  readonly limit: number;
  readonly windowMs: number;
}

/** Limits by kind of request. */
export interface RateLimitOptions {
  /** Posting in one channel. */
  readonly messages: RateLimit;
  /** Editing in one channel. */
  readonly edits: RateLimit;
  /** Follow-ups and edits with one interaction's token. */
  readonly webhooks: RateLimit;
  /** Typing indicators in one channel. */
  readonly typing: RateLimit;
  /** New threads in one channel. No header announces it, and its Retry-After can be minutes. */
  readonly threads: RateLimit;
  /** Editing messages older than an hour in one channel. No header announces it, and its 429 has a code of its own. */
  readonly oldEdits: RateLimit;
  /** Opening direct messages with people. No header announces it, and it is no 429. */
  readonly directMessages: RateLimit;
  /** Everything else, by route and channel. */
  readonly others: RateLimit;
  /** All routes with the bot's token; interactions are exempt. */
  readonly globalPerSecond: number;
  /** So many 401, 403 and 429 in ten minutes ban the address; those of shared limits do not count. */
  readonly invalidRequests: number;
}

/** Limits like Discord's. */
export const platformRateLimits: RateLimitOptions = {
  messages: { limit: 5, windowMs: 5000 },
  edits: { limit: 5, windowMs: 5000 },
  webhooks: { limit: 5, windowMs: 2000 },
  typing: { limit: 5, windowMs: 5000 },
  threads: { limit: 50, windowMs: 300_000 },
  // Discord publishes neither number: these are what bots have met.
  oldEdits: { limit: 3, windowMs: 20_000 },
  directMessages: { limit: 25, windowMs: 600_000 },
  others: { limit: 10, windowMs: 5000 },
  globalPerSecond: 50,
  invalidRequests: 10_000,
};

/** Limits like Discord's for time that passes so many times as fast. */
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

/** Whether a request is within its limits, and the headers that say so. */
export interface RateVerdict {
  readonly headers: Readonly<Record<string, string>>;
  /** Present when rate limited. */
  readonly retryAfterMs?: number;
  readonly scope?: "user" | "global" | "shared";
  /** Discord's JSON error code, where the limit has one. */
  readonly code?: number;
}

/** What counts against limits. */
export interface CountedRequest {
  readonly method: string;
  readonly template: string;
  /** The channel, server or token in its path. */
  readonly major: string;
  readonly isExempt: boolean;
  /** Whether it edits a message older than an hour. */
  readonly isOldEdit: boolean;
}

/** Counts requests in real time, since the client waits in real time. */
export function createRateLimiter(options: RateLimitOptions): {
  take(request: CountedRequest): RateVerdict;
  /** Whether direct messages may be opened with one more person now. */
  mayOpenDirectMessages(): boolean;
} {
  const buckets = new Map<string, { count: number; resetAt: number }>();
  const takeFrom = (key: string, limit: RateLimit) => {
    const now = performance.now();
    let bucket = buckets.get(key);
    if (bucket === undefined || bucket.resetAt <= now) {
      bucket = { count: 0, resetAt: now + limit.windowMs };
      buckets.set(key, bucket);
    }
    const isOver = bucket.count >= limit.limit;
    if (!isOver) bucket.count += 1;
    return { isOver, remaining: limit.limit - bucket.count, resetAfterMs: bucket.resetAt - now };
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

/** Counts the invalid requests of the last ten minutes. @param now Discord's clock, in Unix ms */
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
