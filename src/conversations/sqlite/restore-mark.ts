import type { DatabaseSync } from "node:sqlite";
import type { RestoredStore } from "../store-backend.ts";
import { readMark, removeMark, writeMark } from "./store-marks.ts";

const backedUpAt = "backed-up-at";
const restoredFrom = "restored-from";
const restoredAt = "restored-at";

/** Nothing that a platform still delivers or shows as new is older. */
const knownForMs = 7 * 24 * 60 * 60 * 1000;

/** Whether an open database is a backup that was not opened by a bot since. */
export function isBackup(database: DatabaseSync): boolean {
  return readMark(database, backedUpAt) !== undefined;
}

/** Marks an open database as a backup; `now`: Unix ms from before the copy began. */
export function markAsBackup(database: DatabaseSync, now: number): void {
  writeMark(database, backedUpAt, now);
}

/**
 * What a start needs to know of a backup that was put in place, or of a file that lacks what came after `lostAfter`:
 * noted at its first open, and returned for a week, so that a crash right after that open changes nothing. Unix ms.
 */
export function noticeRestore(
  database: DatabaseSync,
  { now, lostAfter }: { readonly now: number; readonly lostAfter: number | undefined },
): RestoredStore | undefined {
  const backup = readMark(database, backedUpAt) ?? lostAfter;
  if (backup !== undefined) {
    database.exec("BEGIN IMMEDIATE");
    removeMark(database, backedUpAt);
    writeMark(database, restoredFrom, backup);
    writeMark(database, restoredAt, now);
    database.exec("COMMIT");
  }
  const [backedUp, restored] = [readMark(database, restoredFrom), readMark(database, restoredAt)];
  if (backedUp === undefined || restored === undefined || now - restored > knownForMs) return undefined;
  return { backedUpAt: backedUp, restoredAt: restored };
}
