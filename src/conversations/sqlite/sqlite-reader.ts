import type { DatabaseSync } from "node:sqlite";
import type { EntryReader, Space } from "../backend.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import type { CachedEntry, EntryCache } from "./entry-cache.ts";
import { prepareRows } from "./prepare-rows.ts";

/** More keys at once are those of a scan: what it reads would take the place of what turns read again. */
const maxCachedKeys = 300;

const absent: CachedEntry = { value: undefined, expires: null };

/** Reads one space of the table `entries` of an open database. Throws SQLite's errors. */
export function createSqliteReader(database: DatabaseSync, space: Space, cache: EntryCache): EntryReader {
  const select = prepareRows<[value: string, expires: number | null]>(
    database,
    "SELECT value, expires FROM entries WHERE namespace = ? AND key = ?",
  );
  // One statement for any number of keys takes a quarter of the time of one for each.
  const selectMany = prepareRows<[position: number, value: string, expires: number | null]>(
    database,
    `SELECT wanted.key, entries.value, entries.expires FROM json_each(?2) AS wanted
     CROSS JOIN entries ON namespace = ?1 AND entries.key = wanted.value`,
  );
  const probeMany = prepareRows<[position: number, expires: number | null]>(
    database,
    `SELECT wanted.key, entries.expires FROM json_each(?2) AS wanted
     CROSS JOIN entries ON namespace = ?1 AND entries.key = wanted.value`,
  );

  function readOne(key: string): CachedEntry {
    const row = select.get(space, key);
    const entry = row === undefined ? absent : { value: row[0], expires: row[1] };
    cache.set({ space, key }, entry);
    return entry;
  }

  function readMany(keys: readonly string[]): CachedEntry[] {
    const entries = Array.from({ length: keys.length }, () => absent);
    for (const [position, value, expires] of selectMany.all(space, JSON.stringify(keys)))
      entries[position] = { value, expires };
    if (keys.length <= maxCachedKeys)
      for (const [position, key] of keys.entries()) cache.set({ space, key }, entries[position]!);
    return entries;
  }

  return {
    async get(key) {
      cache.compareWithFile();
      return toLive(cache.get({ space, key }) ?? readOne(key), steadyClock.earliest());
    },
    async getMany(keys) {
      cache.compareWithFile();
      const known = keys.map((key) => cache.get({ space, key }));
      const missing = keys.filter((_, position) => known[position] === undefined);
      const read = missing.length === 0 ? [] : readMany(missing);
      const now = steadyClock.earliest();
      let next = 0;
      return known.map((entry) => toLive(entry ?? read[next++]!, now));
    },
    async hasMany(keys) {
      cache.compareWithFile();
      const known = keys.map((key) => cache.get({ space, key }));
      const missing = keys.filter((_, position) => known[position] === undefined);
      const found = new Map(missing.length === 0 ? [] : probeMany.all(space, JSON.stringify(missing)));
      const now = steadyClock.earliest();
      let next = 0;
      return known.map((entry) => {
        if (entry !== undefined) return toLive(entry, now) !== undefined;
        const expires = found.get(next++);
        return expires !== undefined && (expires === null || expires > now);
      });
    },
  };
}

function toLive({ value, expires }: CachedEntry, now: number): string | undefined {
  return expires === null || expires > now ? value : undefined;
}
