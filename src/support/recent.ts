import { LRUCache } from "lru-cache";

/** @see {@link createRecent} */
export type Recent<V extends {}> = Pick<LRUCache<string, V>, "get" | "has" | "set" | "delete" | "clear">;

/**
 * A bounded memory of this process: what was learnt, told or refused lately. The entries that were not used for longest
 * make room for new ones, so a caller must work without each of them.
 * @param max entries; nothing is allocated for them in advance
 * @param ttlMs how long an entry is remembered after it was set, in milliseconds. Default: until it makes room
 * @param now milliseconds on the clock that `ttlMs` is measured by. Default: a steady one
 */
export function createRecent<V extends {} = true>(
  max: number,
  ttlMs = 0,
  now: () => number = () => performance.now(),
): Recent<V> {
  return new LRUCache<string, V>({
    // Sized rather than counted: `max` would preallocate.
    maxSize: max,
    sizeCalculation: () => 1,
    ttl: ttlMs,
    // To the cache, what was added at 0 never expires; and with another resolution it sets timers of its own.
    perf: { now: () => now() + 1 },
    ttlResolution: 0,
  });
}
