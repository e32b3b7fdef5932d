import type { DatabaseSync } from "node:sqlite";
import { countedPrefix, type IndexChange, type IndexMember, type IndexPage } from "../backend.ts";
import { prepareRows } from "./prepare-rows.ts";

/** The sorted indexes of an open database. Throws SQLite's errors. */
export interface SqliteIndexes {
  apply(change: IndexChange): void;
  /** 0 for a member that does not exist. */
  readScore(index: string, member: string): number;
  readPage(index: string, page: IndexPage): IndexMember[];
}

/**
 * Two tables of the same columns: `rankings`, sorted by score too, and `counts`, whose indexes are sorted only when they
 * are read. A change of a score there changes one page of the file instead of several.
 */
export function createSqliteIndexes(database: DatabaseSync): SqliteIndexes {
  const rankings = prepare(database, "rankings");
  const counts = prepare(database, "counts");
  const tableOf = (index: string): Table => (index.startsWith(countedPrefix) ? counts : rankings);
  return {
    apply(change) {
      const { index } = change;
      const table = tableOf(index);
      if (change.kind === "trim-index") table[change.kind].run(index, change.maxScore);
      else if (change.kind === "remove-member") table[change.kind].run(index, change.member);
      else table[change.kind].run(index, change.member, change.score);
    },
    readScore: (index, member) => tableOf(index).readScore.get(index, member)?.[0] ?? 0,
    readPage(index, { order, minScore = Number.MIN_SAFE_INTEGER, offset, max }) {
      const rows = tableOf(index)[order].all(index, minScore, max, offset);
      return rows.map(([member, score]) => ({ member, score }));
    },
  };
}

/** Not a migration: versions that do not know the table ignore it. */
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
    // The condition leaves the page alone when nothing changes.
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
    // With a parameter alone as its limit, SQLite compiles a statement anew each time the parameter is bound.
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
