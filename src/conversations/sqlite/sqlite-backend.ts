import { chmodSync, existsSync } from "node:fs";
import { DatabaseSync, backup } from "node:sqlite";
import { right, wrong } from "../../core/checks.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock, steadyClock } from "../../support/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  absentStore,
  type Backend,
  type BackendOptions,
  type Resolves,
  type RestoredStore,
} from "../backend.ts";
import { createGroupCommit, openCommitTrail, type Written } from "./group-commit.ts";
import {
  compact,
  compactIfDue,
  isSmall,
  prepareSchema,
  isBackup,
  lockStore,
  markAsBackup,
  noticeRestore,
  createWriteState,
  createPrivateFile,
  isOfOneWrite,
  toSqliteStoreError,
  findDamage,
  reportFolder,
  schemaVersion,
} from "./sqlite-file.ts";
import {
  createCountsTable,
  createSqliteIndexes,
  createSqliteReader,
  createSqliteWriter,
} from "./sqlite-entries.ts";

/** How long a write waits for another program's write, which blocks the event loop. */
const busyTimeoutMs = 2000;
/**
 * How many pages the log of writes holds before they are copied into the file. That is 16 MB, four times
 * SQLite's default. Copying blocks the event loop, but copies a page once even if it was written often, so
 * that rare copies cost less.
 */
const checkpointPages = 4000;
/** The part of the file that is kept in memory. The usual 2 MB do not hold what a busy hour changes. */
const cacheKibibytes = 16 * 1024;
const maxBackupAttempts = 20;

/** A {@link Backend} that can copy its file. */
export interface SqliteBackend extends Backend {
  /** Copies the database into another file while it is in use. The copy is a consistent snapshot. */
  copyTo(file: string): Promise<void>;
  /** Present for a week after a backup was restored. */
  readonly restored: RestoredStore | undefined;
}

/**
 * Opens the embedded backend: one file in WAL mode that only its owner can read. Every write is on disk
 * before it resolves, writes of one moment share a transaction, and deleted data is overwritten.
 * @throws ParleyError `store-unavailable`, `store-corrupt`, `store-newer`, each of which says what to do
 */
export function openSqliteBackend(file: string, options: Partial<BackendOptions> = {}): SqliteBackend {
  const { isLook = false, report = () => {}, clock = systemClock } = options;
  // Only the bot judges the file, because a program beside it may inspect a backup.
  const isBot = !isLook && options.exclusive !== false;
  reportFolder(file, report);
  if (isLook && !existsSync(file)) throw absentStore(`the SQLite file ${file}`);
  let isDamaged = false;
  const toError = (error: unknown) => {
    const storeError = toSqliteStoreError(error, file);
    // Damage of a single entry is reported where the entry is decoded.
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
  const openedAt = steadyClock.now();
  const unlock = isBot ? guard(() => lockStore(file)) : () => {};
  let opened: OpenedFile;
  try {
    opened = guard(() => openFile(file, isBot));
  } catch (error) {
    unlock();
    throw error;
  }
  const { database, trail, restored, lostAfter } = opened;
  report(right("Store", `SQLite file ${file}, version ${schemaVersion}`));
  if (lostAfter !== undefined)
    report(
      wrong(
        "Lost writes",
        `${describeLoss(lostAfter)}. Messages and answers since then are gone, and Parley goes on without them`,
        "to get them back, stop it and restore a backup, or database and -wal together as they were before this start",
      ),
    );
  else if (restored !== undefined && restored.restoredAt >= openedAt)
    options.log?.info({ ...restored }, "the store was restored from a backup");
  // A start reads a small file only.
  const damage = isLook || (isBot && isSmall(database)) ? guard(() => findDamage(database)) : [];
  if (damage.length > 0) {
    isDamaged = true;
    report(
      wrong(
        "Integrity",
        `the store ${file} is damaged`,
        `messages may be missing (${damage[0]}). Stop Parley, keep a copy of the file, and restore a backup; without one, "sqlite3 parley.db .recover" saves what is readable`,
      ),
    );
  }
  const reader = createSqliteReader(database);
  const indexes = createSqliteIndexes(database);
  const writer = createSqliteWriter(database, indexes);
  const group = createGroupCommit(database, {
    trail,
    isOfOneWrite,
  });
  const write = <T>(work: () => Written<T>, resolves: Resolves = "durable"): Promise<T> =>
    writes.track(guardAsync(() => group.run(work, resolves)));
  const writes = createWriteState(file, clock, async () => {
    await write(() => writer.apply([], []));
  });
  const keyPage = database.prepare(
    "SELECT key FROM entries WHERE namespace = ? AND key > ? ORDER BY key LIMIT 500",
  );

  return {
    async read(space, keys) {
      return guard(() => reader.read(space, keys));
    },
    async has(space, keys) {
      return guard(() => reader.has(space, keys));
    },
    apply: (conditions, changes, resolves) => write(() => writer.apply(conditions, changes), resolves),
    count: (limits, changes) => write(() => writer.count(limits, changes), "soon"),
    async readIndex(name, page) {
      return guard(() => indexes.readPage(name, page));
    },
    async *keys(space) {
      let last = "";
      for (;;) {
        const rows = guard(() => keyPage.all(space, last));
        for (const row of rows) yield String(row["key"]);
        if (rows.length === 0) return;
        last = String(rows.at(-1)?.["key"]);
      }
    },
    async sweep(now) {
      for (let total = 0; ;) {
        // Each batch joins its own transaction, so that other work runs between the batches of a long sweep.
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
        database.close();
        trail.close();
      }
      unlock();
    },
  };
}

/** Describes the loss for the log and `/readyz`. `lostAfter` is in Unix ms, and 0 means everything. */
function describeLoss(lostAfter: number): string {
  const since =
    lostAfter === 0 ? "everything" : `what was written after ${new Date(lostAfter).toISOString()}`;
  return `the store lacks ${since}: its -wal file was removed or damaged, or an older file was put in its place`;
}

interface OpenedFile {
  readonly database: DatabaseSync;
  readonly trail: ReturnType<typeof openCommitTrail>;
  readonly restored: RestoredStore | undefined;
  readonly lostAfter: number | undefined;
}

function openFile(file: string, judge: boolean): OpenedFile {
  const database = openDatabase(file);
  try {
    // A backup is older than the note beside it, which is right.
    if (judge) compactIfDue(database);
    const isRestored = isBackup(database);
    const trail = openCommitTrail(database, { file, adopt: judge });
    const lostAfter = judge && !isRestored ? trail.lostAfter : undefined;
    const restored = judge ? noticeRestore(database, { now: steadyClock.now(), lostAfter }) : undefined;
    return { database, trail, restored, lostAfter };
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * A write during the first step of a backup ends the backup with the error code 0 and "not an error".
 * @see https://github.com/oven-sh/bun/pull/34466 (describes Node's behaviour)
 */
function delayIfBusy(error: unknown, attempt: number): number | undefined {
  const isBusy = error instanceof Error && "errcode" in error && error.errcode === 0;
  return isBusy && attempt < maxBackupAttempts ? backoffMs(attempt, backoffs.collision) : undefined;
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
    // First, because a file of another program must stay as it is.
    prepareSchema(database, file);
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA cache_size = -${cacheKibibytes};
    `);
    createCountsTable(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}
