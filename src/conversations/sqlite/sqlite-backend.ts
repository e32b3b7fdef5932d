import { chmodSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock } from "../../support/clock.ts";
import { steadyClock } from "../../support/steady-clock.ts";
import { type Backend, type EntryReader, spaces, type Space } from "../backend.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { compact, compactIfDue, isSmall } from "./compaction.ts";
import { createEarlyCounts } from "./early-counts.ts";
import { createEntryCache } from "./entry-cache.ts";
import { createPrivateFile } from "./private-file.ts";
import { isOfOneWrite, toSqliteStoreError } from "./sqlite-errors.ts";
import { createGroupCommit, type GroupResolves, type Written } from "./group-commit.ts";
import { createCountsTable, createSqliteIndexes } from "./sqlite-indexes.ts";
import { lockStore } from "./sqlite-lock.ts";
import type { RestoredStore } from "../store-backend.ts";
import { type CommitTrail, openCommitTrail } from "./commit-trail.ts";
import { findDamage } from "./integrity.ts";
import { isBackup, markAsBackup, noticeRestore } from "./restore-mark.ts";
import { createSqliteReader } from "./sqlite-reader.ts";
import { migrate } from "./sqlite-schema.ts";
import { createSqliteWriter } from "./sqlite-writer.ts";
import { openWalSync, type WalSync } from "./wal-sync.ts";
import { createWriteState } from "./write-state.ts";

/** How the file is opened. */
export interface SqliteOptions {
  /**
   * Whether a second process is refused. Entries are safe either way; but two bots on one file would both answer
   * what is in the inbox. Default true; false for programs that run no turns.
   */
  readonly exclusive?: boolean | undefined;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}

/** How long a write waits for another program's; it blocks the event loop meanwhile. */
const busyTimeoutMs = 2000;
/**
 * Pages that the log of writes holds before they are copied into the file: 16 MB, SQLite's default is a quarter. The
 * copying holds the event loop, and takes a page once however often it was written: less in all, and more rarely.
 */
const checkpointPages = 4000;
/** Of the file, kept in memory: the usual 2 MB do not hold what a busy hour changes, which was read again with each turn. */
const cacheKibibytes = 16 * 1024;
const maxBackupAttempts = 20;

/** {@link Backend} with a copy of the file. */
export interface SqliteBackend extends Backend {
  /** Copies the database into another file while it is in use. The copy is a consistent snapshot. */
  copyTo(file: string): Promise<void>;
  /** For a week after a copy was put in place. */
  readonly restored: RestoredStore | undefined;
  /** The newest write that the file has, when it lacked later ones at this open. Unix ms. */
  readonly lostAfter: number | undefined;
  /** What {@link findDamage} found elsewhere: `notes` says so from then on. */
  markDamaged(): void;
  /** Whether the whole file is read in a few milliseconds. */
  isSmall(): boolean;
  /** @see {@link findDamage} */
  findDamage(): readonly string[];
}

/**
 * The embedded backend: one file, readable to its owner only, WAL, every write on disk before it resolves (those of a
 * moment together), deleted data overwritten.
 * @throws ParleyError `store-unavailable`, `store-corrupt`, `store-newer`, each saying what to do
 */
export function openSqliteBackend(file: string, options: SqliteOptions = {}): SqliteBackend {
  let isDamaged = false;
  const toError = (error: unknown) => {
    const storeError = toSqliteStoreError(error, file);
    // Not a single entry: those are reported where they are decoded.
    if (storeError !== error && storeError.code === "store-corrupt") isDamaged = true;
    return storeError;
  };
  const guard = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw toError(error);
    }
  };
  const guardAsync = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw toError(error);
    }
  };
  // Only the bot judges the file: a program beside it may look at a backup.
  const { exclusive = true, clock = systemClock } = options;
  const unlock = exclusive ? guard(() => lockStore(file)) : () => {};
  let opened: OpenedFile;
  try {
    opened = guard(() => openFile(file, exclusive));
  } catch (error) {
    unlock();
    throw error;
  }
  const { database, trail, disk, restored, lostAfter } = opened;
  const cache = createEntryCache(database);
  const readers = new Map<Space, EntryReader>(
    spaces.map((space) => [space, createSqliteReader(database, space, cache)]),
  );
  const indexes = createSqliteIndexes(database);
  const writer = createSqliteWriter(database, indexes, cache);
  const group = createGroupCommit(database, {
    trail,
    disk,
    clock,
    isOfOneWrite,
    onRollback: () => cache.clear(),
  });
  const write = <T>(
    work: () => Written<T>,
    resolves: GroupResolves = "durable",
    onWritten?: () => void,
  ): Promise<T> => writes.track(guardAsync(() => group.run(work, resolves, onWritten)));
  const earlyCounts = createEarlyCounts(writer, (work) => write(work, "counted"));
  const writes = createWriteState(file, clock, async () => {
    await write(() => writer.apply([], []));
  });
  const keyPage = database.prepare(
    "SELECT key FROM entries WHERE namespace = ? AND key > ? ORDER BY key LIMIT 500",
  );

  return {
    reader(space) {
      return readers.get(space) as EntryReader;
    },
    apply: (conditions, changes, resolves, onWritten) =>
      write(() => writer.apply(conditions, changes), resolves, onWritten),
    async count(limits, changes, early) {
      if (early !== undefined && exclusive) return guard(() => earlyCounts.count(limits, changes, early));
      return await write(() => writer.count(limits, changes), "counted");
    },
    replace: (at, old, value, resolves) => write(() => writer.replace(at, old, value), resolves),
    async readIndex(name, page) {
      cache.compareAgain();
      return guard(() => indexes.readPage(name, page));
    },
    async *keys(space) {
      let last = "";
      for (;;) {
        cache.compareAgain();
        const rows = guard(() => keyPage.all(space, last));
        for (const row of rows) yield String(row["key"]);
        if (rows.length === 0) return;
        last = String(rows.at(-1)?.["key"]);
      }
    },
    async sweep(now) {
      for (let total = 0; ;) {
        // Each joins a transaction of its own, so that other work runs between the batches of a long sweep.
        const removed = await write(() => writer.removeExpired(now), "soon");
        total += removed;
        if (removed === 0) return total;
      }
    },
    async scrub() {
      group.flush();
      guard(() => compact(database));
      const outcome = guard(() => database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get());
      if (outcome?.["busy"] !== 0) {
        throw new ParleyError(
          "store-unavailable",
          `deleted data is still in ${file}-wal: another program is reading the store, try again when it has ended`,
          { detail: { file } },
        );
      }
    },
    attempt: guardAsync,
    async ping() {
      guard(() => database.prepare("SELECT 1 FROM entries LIMIT 1").get());
      await writes.check();
    },
    writes: () => group.counts,
    notes() {
      const lost = lostAfter === undefined ? [] : [describeLoss(lostAfter)];
      return {
        problems: isDamaged ? ["the file is damaged: see the log, and restore a backup"] : [],
        warnings: lost,
        dataLosses: lost.length,
      };
    },
    // A file loses nothing while it is open.
    onDataLost() {},
    restored,
    lostAfter,
    markDamaged() {
      isDamaged = true;
    },
    isSmall: () => isSmall(database),
    findDamage: () => guard(() => findDamage(database)),
    async copyTo(target) {
      group.flush();
      const beganAt = steadyClock.now();
      await guardAsync(() => retry(() => backup(database, target), { delayMs: delayIfBusy }));
      guard(() => withDatabase(target, (copy) => markAsBackup(copy, beganAt)));
      chmodSync(target, 0o600);
    },
    async close() {
      if (database.isOpen) {
        group.flush();
        disk.close();
        database.close();
        trail.close();
      }
      unlock();
    },
  };
}

/** The loss in words, for the log and `/readyz`. `lostAfter` in Unix ms, 0: everything. */
export function describeLoss(lostAfter: number): string {
  const since =
    lostAfter === 0 ? "everything" : `what was written after ${new Date(lostAfter).toISOString()}`;
  return `the store lacks ${since}: its -wal file was removed or damaged, or an older file was put in its place`;
}

interface OpenedFile {
  readonly database: DatabaseSync;
  readonly trail: CommitTrail;
  readonly disk: WalSync;
  readonly restored: RestoredStore | undefined;
  readonly lostAfter: number | undefined;
}

function openFile(file: string, judge: boolean): OpenedFile {
  const database = openDatabase(file);
  try {
    // A backup is older than the note beside it, as it should be.
    if (judge) compactIfDue(database);
    const isRestored = isBackup(database);
    const trail = openCommitTrail(database, { file, adopt: judge });
    const lostAfter = judge && !isRestored ? trail.lostAfter : undefined;
    const restored = judge ? noticeRestore(database, { now: steadyClock.now(), lostAfter }) : undefined;
    const disk = openWalSync(database, file);
    return { database, trail, disk, restored, lostAfter };
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * A write in progress at the first step of a backup ends it at once, with the error code 0 and "not an error".
 * @see https://github.com/oven-sh/bun/pull/34466 (describes Node's behaviour)
 */
function delayIfBusy(error: unknown, attempt: number): number | undefined {
  const isBusy = error instanceof Error && "errcode" in error && error.errcode === 0;
  return isBusy && attempt < maxBackupAttempts ? backoffMs(attempt, { baseMs: 5, maxMs: 200 }) : undefined;
}

function withDatabase(file: string, work: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    work(database);
  } finally {
    database.close();
  }
}

function openDatabase(file: string): DatabaseSync {
  createPrivateFile(file);
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA cache_size = -${cacheKibibytes};
    `);
    migrate(database, file);
    createCountsTable(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
