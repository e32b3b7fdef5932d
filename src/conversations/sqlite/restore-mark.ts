import type { DatabaseSync } from "node:sqlite";
import type { RestoredStore } from "../store-backend.ts";
import { readMark, removeMark, writeMark } from "./store-marks.ts";

const backedUpAt = "backed-up-at";
const restoredFrom = "restored-from";
const restoredAt = "restored-at";

/** Nothing that a platform still delivers or shows as new is older. */
const knownForMs = 7 * 24 * 60 * 60 * 1000;

/** Marks an open database as a backup; `now`: Unix ms from before the copy began. */
export function markAsBackup(database: DatabaseSync, now: number): void {
  writeMark(database, backedUpAt, now);
}

/**
 * What a start needs to know of a backup that was put in place: noted at its first open, and returned for a week, so
 * that a crash right after the first open changes nothing. `now` in Unix ms.
 */
export function noticeRestore(database: DatabaseSync, now: number): RestoredStore | undefined {
  const backup = readMark(database, backedUpAt);
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
