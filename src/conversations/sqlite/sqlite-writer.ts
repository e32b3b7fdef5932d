import type { DatabaseSync } from "node:sqlite";
import type { BackendChange, EntryAddress, IndexChange, PassedLimit, ScoreLimit } from "../backend.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import type { CommitTrail } from "./commit-trail.ts";
import type { SqliteIndexes } from "./sqlite-indexes.ts";

/** The writes of a {@link Backend}, synchronous. */
export interface SqliteWriter {
  /** Applies changes; returns the position in `ifAbsent` of the first entry that exists, or -1 after writing. */
  apply(ifAbsent: readonly EntryAddress[], changes: readonly BackendChange[]): number;
  /** As `Backend.count`. */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): PassedLimit | undefined;
}

/** Statements prepared once. Each call is one transaction, which the trail knows. Throws SQLite's errors. */
export function createSqliteWriter(
  database: DatabaseSync,
  {
    indexes,
    trail,
  }: {
    readonly indexes: SqliteIndexes;
    readonly trail: Pick<CommitTrail, "advance" | "note">;
  },
): SqliteWriter {
  const probe = database.prepare(
    "SELECT 1 FROM entries WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
  );
  const upsert = database.prepare(
    `INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?");
  const keep = database.prepare("UPDATE entries SET expires = ? WHERE namespace = ? AND key = ?");
  const applyChange = (change: BackendChange): void => {
    switch (change.kind) {
      case "set":
        upsert.run(change.at.space, change.at.key, change.value, change.expires ?? null);
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
  const findPassed = (limits: readonly ScoreLimit[]): PassedLimit | undefined => {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores = terms.map(({ index, member }) => indexes.readScore(index, member));
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  };

  return {
    apply(ifAbsent, changes) {
      let commit: number | undefined;
      const taken = inTransaction(database, () => {
        const now = steadyClock.earliest();
        const found = ifAbsent.findIndex(({ space, key }) => probe.get(space, key, now) !== undefined);
        if (found !== -1) return found;
        changes.forEach(applyChange);
        commit = trail.advance();
        return found;
      });
      if (commit !== undefined) trail.note(commit);
      return taken;
    },
    count(limits, changes) {
      // Not noted in the trail: a power failure may take it back.
      // In the WAL, NORMAL waits for the disk at checkpoints alone. Another connection for it would empty this one's
      // page cache with each of its writes.
      database.exec("PRAGMA synchronous = NORMAL");
      try {
        return inTransaction(database, () => {
          const passed = findPassed(limits);
          if (passed === undefined) changes.forEach(applyChange);
          return passed;
        });
      } finally {
        database.exec("PRAGMA synchronous = FULL");
      }
    },
  };
}

/** Runs synchronous work in one transaction, committed whole or rolled back. */
function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // A full disk rolls back by itself; a second ROLLBACK would hide the first error.
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
