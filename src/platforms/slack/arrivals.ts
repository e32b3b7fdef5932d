import { LRUCache } from "lru-cache";

/** Which things have arrived, for those who wait for one. */
export interface Arrivals {
  note(key: string): void;
  /** Resolves to true when it has arrived or does so within `ms`, otherwise to false. */
  within(key: string, ms: number): Promise<boolean>;
}

interface Arrival {
  hasArrived: boolean;
  readonly promise: Promise<void>;
  readonly resolve: () => void;
}

/** Keeps the last `max` keys. */
export function createArrivals(max: number): Arrivals {
  const arrivals = new LRUCache<string, Arrival>({
    max,
    memoMethod: () => ({ hasArrived: false, ...Promise.withResolvers<void>() }),
  });
  return {
    note(key) {
      const arrival = arrivals.memo(key);
      arrival.hasArrived = true;
      arrival.resolve();
    },
    async within(key, ms) {
      const arrival = arrivals.memo(key);
      if (arrival.hasArrived) return true;
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      await Promise.race([arrival.promise, late]);
      clearTimeout(timer);
      return arrival.hasArrived;
    },
  };
}
