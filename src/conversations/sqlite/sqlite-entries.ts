import type { DatabaseSync } from "node:sqlite";
import { steadyClock } from "../../support/clock.ts";
import {
  type Space,
  countedPrefix,
  type IndexChange,
  type IndexMember,
  type IndexPage,
  type BackendChange,
  type PassedLimit,
  type ScoreLimit,
  type WriteCondition,
} from "../backend.ts";
import type { Written } from "./group-commit.ts";
import { prepareRows } from "./sqlite-file.ts";

/** Returns whether a row has not expired. The clock is asked once, and only if a row can expire. */
function createExpiryCheck(): (expires: number | null) => boolean {
  let now: number | undefined;
  return (expires) => expires === null || expires > (now ??= steadyClock.earliest());
}

/**
 * Creates the synchronous writes of a {@link Backend} within a transaction. Each says whether it has written.
 * It prepares its statements once, and looks everything up before it writes. It throws SQLite's errors.
 */
export function createSqliteWriter(database: DatabaseSync, indexes: SqliteIndexes) {
  const select = prepareRows<[value: string, expires: number | null]>(
    database,
    "SELECT value, expires FROM entries WHERE namespace = ? AND key = ?",
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
  const replaceValue = database.prepare("UPDATE entries SET value = ? WHERE namespace = ? AND key = ?");
  const applyChange = (change: BackendChange): void => {
    switch (change.kind) {
      case "set":
        if (change.expires === "kept") replaceValue.run(change.value, change.at.space, change.at.key);
        else upsert.run(change.at.space, change.at.key, change.value, change.expires ?? null);
        return;
      case "delete":
        remove.run(change.at.space, change.at.key);
        return;
      case "keep":
        keep.run(change.expires ?? null, change.at.space, change.at.key);
        return;
      case "add-member":
      case "append-member":
      case "add-score":
      case "remove-member":
      case "trim-index":
        indexes.apply(change);
    }
  };
  const holds = (
    { space, key, mustExist = false, mustBe }: WriteCondition,
    isAlive: (expires: number | null) => boolean,
  ): boolean => {
    const [value, expires] = select.get(space, key) ?? [];
    const isThere = expires !== undefined && isAlive(expires);
    return mustBe === undefined ? isThere === mustExist : isThere && value === mustBe;
  };
  const findPassed = (limits: readonly ScoreLimit[]): PassedLimit | undefined => {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores = terms.map(({ index, member }) => indexes.readScore(index, member));
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  };

  return {
    /** The same as `Backend.apply`. */
    apply(conditions: readonly WriteCondition[], changes: readonly BackendChange[]): Written<number> {
      const isAlive = createExpiryCheck();
      const found = conditions.findIndex((condition) => !holds(condition, isAlive));
      if (found === -1) changes.forEach(applyChange);
      return { result: found, isWritten: found === -1 };
    },
    /** The same as `Backend.count`. */
    count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Written<PassedLimit | undefined> {
      const passed = findPassed(limits);
      if (passed === undefined) changes.forEach(applyChange);
      return { result: passed, isWritten: passed === undefined && changes.length > 0 };
    },
    /** Removes some expired entries and returns their number. `now` is in Unix ms. */
    removeExpired(now: number): Written<number> {
      const removed = Number(removeExpired.run(now).changes);
      return { result: removed, isWritten: removed > 0 };
    },
  };
}

type SqliteIndexes = ReturnType<typeof createSqliteIndexes>;

/**
 * Creates two tables with the same columns. `rankings` is also sorted by score. `counts` has indexes that are
 * sorted only when they are read, so that a change of a score there changes fewer pages of the file. They
 * throw SQLite's errors.
 */
export function createSqliteIndexes(database: DatabaseSync) {
  const rankings = prepare(database, "rankings");
  const counts = prepare(database, "counts");
  const tableOf = (index: string): Table => (index.startsWith(countedPrefix) ? counts : rankings);
  return {
    apply(change: IndexChange): void {
      const { index } = change;
      const table = tableOf(index);
      if (change.kind === "trim-index") table[change.kind].run(index, change.maxScore);
      else if (change.kind === "remove-member") table[change.kind].run(index, change.member);
      else table[change.kind].run(index, change.member, change.score);
    },
    /** The score of a member, or 0 if it does not exist. */
    readScore: (index: string, member: string): number =>
      tableOf(index).readScore.get(index, member)?.[0] ?? 0,
    readPage(
      index: string,
      { order, minScore = Number.MIN_SAFE_INTEGER, offset, max }: IndexPage,
    ): IndexMember[] {
      const rows = tableOf(index)[order].all(index, minScore, max, offset);
      return rows.map(([member, score]) => ({ member, score }));
    },
  };
}

/** This is no migration, because versions that do not know the table ignore it. */
export function createCountsTable(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS counts (
      ranking TEXT NOT NULL,
      member TEXT NOT NULL,
      score INTEGER NOT NULL,
      PRIMARY KEY (ranking, member)
    ) STRICT, WITHOUT ROWID
  `);
}

type Table = ReturnType<typeof prepare>;

function prepare(database: DatabaseSync, table: "rankings" | "counts") {
  return {
    // The condition leaves the page unchanged if nothing changes.
    "add-member": database.prepare(
      `INSERT INTO ${table} (ranking, member, score) VALUES (?, ?, ?)
       ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score WHERE excluded.score > score`,
    ),
    "append-member": database.prepare(
      `INSERT INTO ${table} (ranking, member, score)
       VALUES (?1, ?2, max(?3, coalesce((SELECT max(score) + 1 FROM ${table} WHERE ranking = ?1), ?3)))
       ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score`,
    ),
    "add-score": database.prepare(
      `INSERT INTO ${table} (ranking, member, score) VALUES (?, ?, ?)
       ON CONFLICT (ranking, member) DO UPDATE SET score = score + excluded.score`,
    ),
    "remove-member": database.prepare(`DELETE FROM ${table} WHERE ranking = ? AND member = ?`),
    "trim-index": database.prepare(`DELETE FROM ${table} WHERE ranking = ? AND score <= ?`),
    readScore: prepareRows<[score: number]>(
      database,
      `SELECT score FROM ${table} WHERE ranking = ? AND member = ?`,
    ),
    // If the limit is only a parameter, SQLite compiles the statement again each time it is bound.
    "highest-first": prepareRows<[member: string, score: number]>(
      database,
      `SELECT member, score FROM ${table} WHERE ranking = ? AND score >= ?
       ORDER BY score DESC, member DESC LIMIT ? + 0 OFFSET ?`,
    ),
    "lowest-first": prepareRows<[member: string, score: number]>(
      database,
      `SELECT member, score FROM ${table} WHERE ranking = ? AND score >= ?
       ORDER BY score, member LIMIT ? + 0 OFFSET ?`,
    ),
  };
}

/** Creates the synchronous reads of a {@link Backend}. They throw SQLite's errors. */
export function createSqliteReader(database: DatabaseSync) {
  // One statement for any number of keys is faster than one for each.
  const lookUp = (columns: string): string =>
    `SELECT wanted.key, expires, ${columns} FROM json_each(?2) AS wanted
     CROSS JOIN entries ON namespace = ?1 AND entries.key = wanted.value`;
  const select = prepareRows<[position: number, expires: number | null, value: string]>(
    database,
    lookUp("entries.value"),
  );
  const probe = prepareRows<[position: number, expires: number | null]>(database, lookUp("1"));
  return {
    read(space: Space, keys: readonly string[]): (string | undefined)[] {
      const isAlive = createExpiryCheck();
      const rows = select.all(space, JSON.stringify(keys)).filter(([, expires]) => isAlive(expires));
      const values = new Map(rows.map(([position, , value]) => [position, value]));
      return keys.map((_, position) => values.get(position));
    },
    has(space: Space, keys: readonly string[]): boolean[] {
      const isAlive = createExpiryCheck();
      const rows = probe.all(space, JSON.stringify(keys)).filter(([, expires]) => isAlive(expires));
      const positions = new Set(rows.map(([position]) => position));
      return keys.map((_, position) => positions.has(position));
    },
  };
}
