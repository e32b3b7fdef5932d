import type { DatabaseSync } from "node:sqlite";
import type { EntryAddress } from "../backend.ts";
import { createCacheBySpace } from "../cache-by-space.ts";
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
  /** With a read of the file itself: entries that are read next are not older than what that finds. */
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

/** @see {@link EntryCache} */
export function createEntryCache(database: DatabaseSync): EntryCache {
  const entries = createCacheBySpace<CachedEntry>(({ value = "" }) => value.length);
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
      if (now !== version) entries.clear();
      version = now;
      isCompared = true;
      setImmediate(forgetComparing);
    },
    compareAgain: forgetComparing,
    get: (at) => entries.get(at),
    set: (at, entry) => entries.set(at, entry),
    keep(at, expires) {
      const value = entries.get(at)?.value;
      if (value !== undefined) entries.set(at, { value, expires });
    },
    delete: (at) => entries.delete(at),
    clear: () => entries.clear(),
  };
}
