import { LRUCache } from "lru-cache";
import { type EntryAddress, type Space, spaces } from "./backend.ts";

/** Values in memory under the addresses of entries. In each space, those that were not used for longest make room. */
export interface CacheBySpace<T extends object> {
  get(at: EntryAddress): T | undefined;
  /** A value that is too large is not kept, and leaves none behind. */
  set(at: EntryAddress, value: T): void;
  delete(at: EntryAddress): void;
  clear(): void;
}

/** Of the values of a space, in characters. */
const maxChars = 2 * 1024 * 1024;
/** A longer value, such as a file that people sent, would take the place of many. */
const maxValueChars = 64 * 1024;
/** What a value takes besides itself and its key. */
const overheadChars = 100;

/** @param charsOf length of a value, in characters */
export function createCacheBySpace<T extends object>(charsOf: (value: T) => number): CacheBySpace<T> {
  // By space, then by key: joining both would cost more than the look-up.
  const caches = new Map(
    spaces.map((space) => [
      space,
      new LRUCache<string, T>({
        maxSize: maxChars,
        maxEntrySize: maxValueChars,
        sizeCalculation: (value, key) => charsOf(value) + key.length + overheadChars,
      }),
    ]),
  );
  const of = (space: Space) => caches.get(space) as LRUCache<string, T>;
  return {
    get: ({ space, key }) => of(space).get(key),
    set: ({ space, key }, value) => void of(space).set(key, value),
    delete: ({ space, key }) => void of(space).delete(key),
    clear() {
      for (const cache of caches.values()) cache.clear();
    },
  };
}
