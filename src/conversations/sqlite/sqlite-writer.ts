import type { DatabaseSync } from "node:sqlite";
import type {
  BackendChange,
  EntryAddress,
  IndexChange,
  PassedLimit,
  ScoreLimit,
  WriteCondition,
} from "../backend.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import type { EntryCache } from "./entry-cache.ts";
import type { Written } from "./group-commit.ts";
import { prepareRows } from "./prepare-rows.ts";
import type { SqliteIndexes } from "./sqlite-indexes.ts";

/** The writes of a {@link Backend}, synchronous and within a transaction. Each says whether it has written. */
export interface SqliteWriter {
  /** Applies changes; the position of the first condition that does not hold, or -1 after writing. */
  apply(conditions: readonly WriteCondition[], changes: readonly BackendChange[]): Written<number>;
  /** As `Backend.count`. */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Written<PassedLimit | undefined>;
  /** The first limit that is passed. `unwritten`: what will be added to a score. Writes nothing. */
  findPassed(
    limits: readonly ScoreLimit[],
    unwritten?: (index: string, member: string) => number,
  ): PassedLimit | undefined;
  /** As `Backend.replace`. */
  replace(at: EntryAddress, old: string, value: string): Written<boolean>;
  /** Removes some expired entries; how many. `now` in Unix ms. */
  removeExpired(now: number): Written<number>;
}

/**
 * Statements prepared once. Nothing is written before everything is looked up. What it writes is in the cache at once: who
 * rolls its transaction back clears that. Throws SQLite's errors.
 */
export function createSqliteWriter(
  database: DatabaseSync,
  indexes: SqliteIndexes,
  cache: EntryCache,
): SqliteWriter {
  const probe = prepareRows<[1]>(
    database,
    "SELECT 1 FROM entries WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
  );
  const readValue = prepareRows<[value: string]>(
    database,
    "SELECT value FROM entries WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
  );
  const upsert = database.prepare(
    `INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?");
  const keep = database.prepare("UPDATE entries SET expires = ? WHERE namespace = ? AND key = ?");
  const removeExpired = database.prepare(
    "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT 500)",
  );
  const replaceValue = database.prepare(
    "UPDATE entries SET value = ? WHERE namespace = ? AND key = ? AND value = ?",
  );
  const applyChange = (change: BackendChange): void => {
    switch (change.kind) {
      case "set":
        upsert.run(change.at.space, change.at.key, change.value, change.expires ?? null);
        cache.set(change.at, { value: change.value, expires: change.expires ?? null });
        return;
      case "delete":
        remove.run(change.at.space, change.at.key);
        cache.delete(change.at);
        return;
      case "keep":
        keep.run(change.expires ?? null, change.at.space, change.at.key);
        cache.keep(change.at, change.expires ?? null);
        return;
      case "add-member":
      case "append-member":
      case "add-score":
      case "remove-member":
      case "trim-index":
        indexes.apply(change);
    }
  };
  const holds = ({ space, key, mustExist = false, mustBe }: WriteCondition, now: number): boolean => {
    if (mustBe !== undefined) return readValue.get(space, key, now)?.[0] === mustBe;
    return (probe.get(space, key, now) !== undefined) === mustExist;
  };
  const findPassed: SqliteWriter["findPassed"] = (limits, unwritten = () => 0) => {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores = terms.map(
        ({ index, member }) => indexes.readScore(index, member) + unwritten(index, member),
      );
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  };

  return {
    apply(conditions, changes) {
      const now = conditions.length === 0 ? 0 : steadyClock.earliest();
      const found = conditions.findIndex((condition) => !holds(condition, now));
      if (found === -1) changes.forEach(applyChange);
      return { result: found, isWritten: found === -1 };
    },
    count(limits, changes) {
      const passed = findPassed(limits);
      if (passed === undefined) changes.forEach(applyChange);
      return { result: passed, isWritten: passed === undefined && changes.length > 0 };
    },
    findPassed,
    replace({ space, key }, old, value) {
      const isReplaced = replaceValue.run(value, space, key, old).changes > 0;
      cache.delete({ space, key });
      return { result: isReplaced, isWritten: isReplaced };
    },
    removeExpired(now) {
      const removed = Number(removeExpired.run(now).changes);
      // Which they were is not known.
      if (removed > 0) cache.clear();
      return { result: removed, isWritten: removed > 0 };
    },
  };
}
