import type { DatabaseSync } from "node:sqlite";

/**
 * Numbers that the file keeps about itself, as members of an index that nothing else has. Earlier versions ignore
 * them, so they need no migration.
 */
const index = "store-marks";

/** The number under a name. Throws SQLite's errors, as all of these do. */
export function readMark(database: DatabaseSync, name: string): number | undefined {
  const row = database
    .prepare("SELECT score FROM rankings WHERE ranking = ? AND member = ?")
    .get(index, name);
  return row === undefined ? undefined : Number(row["score"]);
}

/** Writes a number; a safe integer. */
export function writeMark(database: DatabaseSync, name: string, value: number): void {
  database
    .prepare("INSERT OR REPLACE INTO rankings (ranking, member, score) VALUES (?, ?, ?)")
    .run(index, name, value);
}

/** Removes a number, if it is there. */
export function removeMark(database: DatabaseSync, name: string): void {
  database.prepare("DELETE FROM rankings WHERE ranking = ? AND member = ?").run(index, name);
}
