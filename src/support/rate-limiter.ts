import { sleep as sleepFor } from "./clock.ts";
import { createRecent } from "./recent.ts";

/** Settings of {@link createRateLimiter}. */
interface RateLimiterOptions {
  /** Keys remembered; past it the least recently used is forgotten. */
  readonly maxKeys: number;
  /** Milliseconds on any steady clock. Default `performance.now`. */
  readonly now?: () => number;
}

/** A token bucket for each key: refills evenly and holds one minute's worth. Counts in this process only. */
interface RateLimiter {
  /** Takes one token. Returns 0 when it was taken, else the milliseconds until there is one. */
  take(key: string, perMinute: number): number;
}

/** @see {@link RateLimiter} */
export function createRateLimiter({
  maxKeys,
  now = () => performance.now(),
}: RateLimiterOptions): RateLimiter {
  const buckets = createRecent<{ readonly tokens: number; readonly at: number }>(maxKeys);
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

/** Waits until one more call is within a limit. */
interface SlidingWindowLimiter {
  /** Resolves when the call may be made; rejects with the reason of `signal` where that aborts first. */
  take(signal?: AbortSignal): Promise<void>;
  /** Whether the call may be made now; leaves a part of the limit to {@link take}. */
  tryTake(): boolean;
}

interface SlidingWindowOptions {
  /** Calls that are let through in any `windowMs`. */
  readonly max: number;
  readonly windowMs: number;
  /** Of `max`, so many are kept for calls that must be made. */
  readonly reserved: number;
  /** Milliseconds on any steady clock. Default `performance.now`. */
  readonly now?: () => number;
  /** Ends early when the signal aborts. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * One limit for everyone who shares it, first come first served among equals. All replies of a workspace edit under
 * one of these: a 429 would hold up every call of the client, so it is better not to meet it.
 */
export function createSlidingWindowLimiter(options: SlidingWindowOptions): SlidingWindowLimiter {
  const { max, windowMs, reserved, now = () => performance.now(), sleep = sleepFor } = options;
  const times: number[] = [];

  /** Calls within the window that ends now. */
  function recent(): number[] {
    const start = now() - windowMs;
    while (times.length > 0 && (times[0] ?? 0) <= start) times.shift();
    return times;
  }

  return {
    async take(signal) {
      signal?.throwIfAborted();
      while (recent().length >= max) {
        await sleep((times[times.length - max] ?? now()) + windowMs - now() + 1, signal);
        signal?.throwIfAborted();
      }
      times.push(now());
    },
    tryTake() {
      if (recent().length >= max - reserved) return false;
      times.push(now());
      return true;
    },
  };
}
