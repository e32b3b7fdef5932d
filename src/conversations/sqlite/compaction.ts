import type { DatabaseSync } from "node:sqlite";
import { readMark, removeMark, writeMark } from "./store-marks.ts";

/** 4 MiB: rewritten in about 30 ms. */
const smallPages = 1024;
const dueMark = "compaction-due";

/** Whether the whole file is read or rewritten in a few milliseconds. */
export function isSmall(database: DatabaseSync): boolean {
  return Number(database.prepare("PRAGMA page_count").get()?.["page_count"]) <= smallPages;
}

/**
 * Removes what deletions leave in the file. SQLite overwrites a deleted value, but not the copy that stays behind where
 * a full page was split and the value moved; VACUUM writes the file anew, at about 8 ms per MB. A large file is marked,
 * and rewritten at its next open by {@link compactIfDue}. Throws SQLite's errors.
 */
export function compact(database: DatabaseSync): void {
  if (isSmall(database)) database.exec("VACUUM");
  else writeMark(database, dueMark, 1);
}

/** Rewrites a file that {@link compact} marked. A failure, such as a full disk, leaves the mark. */
export function compactIfDue(database: DatabaseSync): void {
  if (readMark(database, dueMark) === undefined) return;
  try {
    database.exec("VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    removeMark(database, dueMark);
  } catch {
    // The data is not affected: the next open tries again.
  }
}
