import type { DatabaseSync } from "node:sqlite";
import { LRUCache } from "lru-cache";
import type { EntryAddress } from "../backend.ts";
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
  delete(at: EntryAddress): void;
  /** After a transaction that was rolled back. */
  clear(): void;
}

/** Of all values, in characters. */
const maxChars = 8 * 1024 * 1024;
/** A longer value, such as a file that people sent, would take the place of many. */
const maxEntryChars = 64 * 1024;
/** What an entry takes besides its value and key. */
const overheadChars = 100;

/** @see {@link EntryCache} */
export function createEntryCache(database: DatabaseSync): EntryCache {
  const entries = new LRUCache<string, CachedEntry>({
    maxSize: maxChars,
    maxEntrySize: maxEntryChars,
    sizeCalculation: ({ value = "" }, key) => value.length + key.length + overheadChars,
  });
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
      isCompared = true;
      setImmediate(forgetComparing);
      const now = dataVersion.get()?.[0];
      if (now !== version) entries.clear();
      version = now;
    },
    compareAgain: forgetComparing,
    get(at) {
      return entries.get(toName(at));
    },
    set(at, entry) {
      // One that is too large leaves none behind.
      entries.set(toName(at), entry);
    },
    delete(at) {
      entries.delete(toName(at));
    },
    clear() {
      entries.clear();
    },
  };
}

function toName({ space, key }: EntryAddress): string {
  return `${space}\0${key}`;
}
