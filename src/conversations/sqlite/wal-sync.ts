import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";

/** Waits for the disk in the place of SQLite, which could do so on the main thread only. */
export interface WalSync {
  /**
   * Calls `done` when everything that was committed before is on disk: at once where the disk is fast, from the thread
   * pool where it is not. `error`: it may not be.
   */
  sync(done: (error: unknown) => void): void;
  /** The same on the main thread. Throws the system's error. */
  syncNow(): void;
  close(): void;
}

/** A disk that takes longer is waited for in the thread pool, which costs a turn of the event loop. */
const maxOnMainThreadMs = 0.5;
/** One slow sync says little of the disk. */
const maxSampleMs = 1;
const sampleWeight = 0.1;
/** So many syncs later a slow disk is timed again. */
const syncsUntilTimed = 1000;

/**
 * Sets an open database in WAL mode to leave the waiting to this. Syncing the `-wal` file is all that
 * `synchronous=FULL` adds to a commit: `NORMAL` keeps the order of writes itself. @see https://sqlite.org/wal.html
 * On file systems without WAL, SQLite goes on waiting with each commit. Throws SQLite's and the system's errors.
 */
export function openWalSync(database: DatabaseSync, file: string): WalSync {
  const mode = database.prepare("PRAGMA journal_mode").get()?.["journal_mode"];
  if (mode !== "wal")
    return { sync: (done) => done(undefined), syncNow: () => undefined, close: () => undefined };
  // "r+": Windows syncs only what can be written. The file stays the same while the database is open.
  const descriptor = openSync(`${file}-wal`, "r+");
  database.exec("PRAGMA synchronous = NORMAL");

  const timeOnce = (): number => {
    const startedAt = performance.now();
    fdatasyncSync(descriptor);
    return Math.min(performance.now() - startedAt, maxSampleMs);
  };
  let averageMs = timeOnce();
  let untilTimed = 0;

  return {
    sync(done) {
      untilTimed--;
      if (averageMs > maxOnMainThreadMs && untilTimed > 0) {
        fdatasync(descriptor, (error) => done(error ?? undefined));
        return;
      }
      try {
        const sampleMs = timeOnce();
        averageMs += (sampleMs - averageMs) * sampleWeight;
        if (averageMs > maxOnMainThreadMs) untilTimed = syncsUntilTimed;
      } catch (error) {
        done(error);
        return;
      }
      done(undefined);
    },
    syncNow: () => fdatasyncSync(descriptor),
    close: () => closeSync(descriptor),
  };
}
