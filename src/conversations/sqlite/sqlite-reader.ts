import type { DatabaseSync } from "node:sqlite";
import type { EntryReader, Space } from "../backend.ts";
import { steadyClock } from "../../support/steady-clock.ts";

/** Reads one space of the table `entries` of an open database. Throws SQLite's errors. */
export function createSqliteReader(database: DatabaseSync, space: Space): EntryReader {
  const live = "namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)";
  const select = database.prepare(`SELECT value FROM entries WHERE ${live}`);
  const probe = database.prepare(`SELECT 1 FROM entries WHERE ${live}`);

  const read = (key: string) =>
    select.get(space, key, steadyClock.earliest())?.["value"] as string | undefined;
  const isThere = (key: string) => probe.get(space, key, steadyClock.earliest()) !== undefined;
  return {
    async get(key) {
      return read(key);
    },
    async getMany(keys) {
      return keys.map(read);
    },
    async hasMany(keys) {
      return keys.map(isThere);
    },
  };
}
