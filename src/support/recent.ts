import { LRUCache } from "lru-cache";

/** The memory that {@link createRecent} makes. */
export type Recent<V extends {}> = Pick<LRUCache<string, V>, "get" | "has" | "set" | "delete" | "clear">;

/**
 * A bounded memory in this process for what was learnt, told or refused lately. The least recently used
 * entries make room for new ones, so a caller must also work without them.
 * @param max the number of entries, for which no memory is reserved
 * @param ttlMs how many milliseconds an entry lives after it was set. Default: until it makes room
 * @param now returns milliseconds on the clock for `ttlMs`. Default: a steady clock
 */
export function createRecent<V extends {} = true>(
  max: number,
  ttlMs = 0,
  now: () => number = () => performance.now(),
): Recent<V> {
  return new LRUCache<string, V>({
    // A size is used instead of a count, because `max` would preallocate memory.
    maxSize: max,
    sizeCalculation: () => 1,
    ttl: ttlMs,
    // In the cache, entries that were added at time 0 never expire. Another resolution would set timers.
    perf: { now: () => now() + 1 },
    ttlResolution: 0,
  });
}
