import { sleep as sleepFor } from "./clock.ts";
import { createRecent } from "./recent.ts";

/** The settings of {@link createRateLimiter}. */
interface RateLimiterOptions {
  /** How many keys are remembered. Beyond that the least recently used one is forgotten. */
  readonly maxKeys: number;
  /** Returns milliseconds on a steady clock. Default `performance.now`. */
  readonly now?: () => number;
}

/** A token bucket per key, which refills evenly and holds a minute's tokens. Each process counts its own. */
interface RateLimiter {
  /** Takes a token and returns 0, or returns the milliseconds until there is one. */
  take(key: string, perMinute: number): number;
}

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
  /** Resolves when the call may be made. Rejects with the reason of `signal` if that aborts first. */
  take(signal?: AbortSignal): Promise<void>;
  /** Whether the call may be made now. It leaves a part of the limit to {@link take}. */
  tryTake(): boolean;
}

interface SlidingWindowOptions {
  /** How many calls may be made in any `windowMs`. */
  readonly max: number;
  readonly windowMs: number;
  /** How many of `max` are reserved for calls that must be made. */
  readonly reserved: number;
  /** Returns milliseconds on a steady clock. Default `performance.now`. */
  readonly now?: () => number;
  /** Waits, and ends early when the signal aborts. */
  readonly sleep?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/**
 * A limit that all users share, first come first served. All replies of a workspace edit under one such
 * limit, because a 429 response would delay every call of the client.
 */
export function createSlidingWindowLimiter(options: SlidingWindowOptions): SlidingWindowLimiter {
  const { max, windowMs, reserved, now = () => performance.now(), sleep = sleepFor } = options;
  const times: number[] = [];

  /** The calls within the window that ends now. */
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
