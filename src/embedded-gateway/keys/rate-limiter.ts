/** Says who may go on, by a bucket for each key that refills evenly and holds a minute's worth. */
export interface RateLimiter {
  /** Milliseconds until the next one may; 0: go on, it is counted. `undefined` a minute: without limit. */
  take(id: string, perMinute: number | undefined): number;
}

/** Counts in this process alone. */
export function createRateLimiter(now: () => number): RateLimiter {
  const buckets = new Map<string, { readonly left: number; readonly at: number }>();
  return {
    take: (id, perMinute) => {
      if (perMinute === undefined) return 0;
      const at = now();
      const bucket = buckets.get(id) ?? { left: perMinute, at };
      const perMs = perMinute / 60_000;
      const left = Math.min(perMinute, bucket.left + (at - bucket.at) * perMs);
      const isFree = left >= 1;
      buckets.set(id, { left: isFree ? left - 1 : left, at });
      return isFree ? 0 : (1 - left) / perMs;
    },
  };
}
