import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";

/** What has arrived under a key, for those who wait for it. */
export interface Arrivals<T> {
  note(key: string, value: T): void;
  /** Resolves to what has arrived or does so within `ms`, otherwise to `undefined`. */
  within(key: string, ms: number): Promise<T | undefined>;
}

/** Keeps the last `max` keys. */
export function createArrivals<T>(max: number, clock: Clock): Arrivals<T> {
  const arrivals = new LRUCache<string, PromiseWithResolvers<T>>({
    max,
    memoMethod: () => Promise.withResolvers<T>(),
  });
  return {
    note: (key, value) => arrivals.memo(key).resolve(value),
    async within(key, ms) {
      const { promise: late, resolve } = Promise.withResolvers<undefined>();
      const cancelTimer = clock.after(ms, () => resolve(undefined));
      try {
        return await Promise.race([arrivals.memo(key).promise, late]);
      } finally {
        cancelTimer();
      }
    },
  };
}
