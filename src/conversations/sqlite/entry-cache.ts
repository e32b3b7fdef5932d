import type { DatabaseSync } from "node:sqlite";
import { LRUCache } from "lru-cache";
import { type EntryAddress, type Space, spaces } from "../backend.ts";
import { prepareRows } from "./prepare-rows.ts";

/** An entry as the file has it. `value` undefined: there is none. */
export interface CachedEntry {
  readonly value: string | undefined;
  /** Unix ms. `null`: never. */
  readonly expires: number | null;
}

/** Entries of the file that were read or written lately. A turn reads the same few again and again. */
export interface EntryCache {
  /**
   * Before a read: forgets everything when another program has written to the file. Asks the file once in each iteration of
   * the event loop: whoever tells this process of that write does so in a later one. Throws SQLite's errors.
   */
  compareWithFile(): void;
  /** After a read of the file itself: entries that are read next are not older than that. */
  compareAgain(): void;
  /** `undefined`: the file must be read. */
  get(at: EntryAddress): CachedEntry | undefined;
  /** What was just read, or is written by a transaction that {@link EntryCache.clear} takes back. */
  set(at: EntryAddress, entry: CachedEntry): void;
  /** The entry expires at another time, if there is one. */
  keep(at: EntryAddress, expires: number | null): void;
  delete(at: EntryAddress): void;
  /** After a transaction that was rolled back. */
  clear(): void;
}

/** Of the values of a space, in characters. */
const maxChars = 2 * 1024 * 1024;
/** A longer value, such as a file that people sent, would take the place of many. */
const maxEntryChars = 64 * 1024;
/** What an entry takes besides its value and key. */
const overheadChars = 100;

/** @see {@link EntryCache} */
export function createEntryCache(database: DatabaseSync): EntryCache {
  // By space, then by key: joining both would cost more than the look-up.
  const caches = new Map(
    spaces.map((space) => [
      space,
      new LRUCache<string, CachedEntry>({
        maxSize: maxChars,
        maxEntrySize: maxEntryChars,
        sizeCalculation: ({ value = "" }, key) => value.length + key.length + overheadChars,
      }),
    ]),
  );
  const entriesOf = (space: Space) => caches.get(space) as LRUCache<string, CachedEntry>;
  const clear = () => {
    for (const entries of caches.values()) entries.clear();
  };
  // Changes when another connection has written to the file. @see https://sqlite.org/pragma.html#pragma_data_version
  const dataVersion = prepareRows<[number]>(database, "PRAGMA data_version");
  let version = dataVersion.get()?.[0];
  let isCompared = false;
  const forgetComparing = () => {
    isCompared = false;
  };

  return {
    compareWithFile() {
      if (isCompared) return;
      const now = dataVersion.get()?.[0];
      if (now !== version) clear();
      version = now;
      isCompared = true;
      setImmediate(forgetComparing);
    },
    compareAgain: forgetComparing,
    get: ({ space, key }) => entriesOf(space).get(key),
    set({ space, key }, entry) {
      // One that is too large leaves none behind.
      entriesOf(space).set(key, entry);
    },
    keep({ space, key }, expires) {
      const value = entriesOf(space).get(key)?.value;
      if (value !== undefined) entriesOf(space).set(key, { value, expires });
    },
    delete({ space, key }) {
      entriesOf(space).delete(key);
    },
    clear,
  };
}
