import { DatabaseSync } from "node:sqlite";
import { toSqliteStoreError } from "./sqlite-errors.ts";

/** More would say nothing new. */
const maxFindings = 5;

/**
 * Reads the whole file and compares tables with their indexes; returns what is wrong with it, without contents,
 * or nothing. About 5 ms per MiB. Throws SQLite's errors that say nothing about the file.
 */
export function findDamage(database: DatabaseSync): readonly string[] {
  try {
    const rows = database.prepare(`PRAGMA integrity_check(${maxFindings})`).all();
    return rows.map((row) => String(row["integrity_check"])).filter((finding) => finding !== "ok");
  } catch (error) {
    if (toSqliteStoreError(error, "").code !== "store-corrupt") throw error;
    return [(error as Error).message];
  }
}

/** {@link findDamage} of a file that another process has open. */
export function findDamageIn(file: string): readonly string[] {
  const database = new DatabaseSync(file, { readOnly: true });
  try {
    return findDamage(database);
  } finally {
    database.close();
  }
}
