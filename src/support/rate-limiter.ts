import { LRUCache } from "lru-cache";

/** Settings of {@link createRateLimiter}. */
export interface RateLimiterOptions {
  /** Keys remembered; past it the least recently used is forgotten. */
  readonly maxKeys: number;
  /** Milliseconds on any steady clock. Default `performance.now`. */
  readonly now?: () => number;
}

/** A token bucket for each key: refills evenly and holds one minute's worth. Counts in this process only. */
export interface RateLimiter {
  /** Takes one token. Returns 0 when it was taken, else the milliseconds until there is one. */
  take(key: string, perMinute: number): number;
}

/** @see {@link RateLimiter} */
export function createRateLimiter({
  maxKeys,
  now = () => performance.now(),
}: RateLimiterOptions): RateLimiter {
  const buckets = new LRUCache<string, { readonly tokens: number; readonly at: number }>({ max: maxKeys });
  return {
    take(key, perMinute) {
      const at = now();
      const perMs = perMinute / 60_000;
      const bucket = buckets.get(key) ?? { tokens: perMinute, at };
      const tokens = Math.min(perMinute, bucket.tokens + (at - bucket.at) * perMs);
      const isTaken = tokens >= 1;
      buckets.set(key, { tokens: isTaken ? tokens - 1 : tokens, at });
      return isTaken ? 0 : (1 - tokens) / perMs;
    },
  };
}
