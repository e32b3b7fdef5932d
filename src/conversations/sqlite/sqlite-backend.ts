import { chmodSync, constants, existsSync, type Dirent } from "node:fs";
import { DatabaseSync, backup } from "node:sqlite";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
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
  readMark,
  removeMark,
  writeMark,
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
import { unlessMissing } from "../../support/unless-missing.ts";

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

/**
 * Locks `<file>-lock` for as long as this process lives, and returns the function that unlocks it. The
 * operating system drops the lock with the process, so it is never stale.
 * @throws ParleyError `store-unavailable` if another process has it
 */
function lockStore(file: string): () => void {
  const lockFile = `${file}-lock`;
  createPrivateFile(lockFile);
  const holder = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    holder.close();
    throw new ParleyError(
      "store-unavailable",
      `the store ${file} is in use by another Parley: stop that one, give this one a file of its own, or use a server for several`,
      { detail: { file }, cause: error },
    );
  }
  return () => {
    if (holder.isOpen) holder.close();
  };
}

const backedUpAt = "backed-up-at";
const restoredFrom = "restored-from";
const restoredAt = "restored-at";

/** Nothing that a platform still delivers or shows as new is older than this. */
const knownForMs = 7 * 24 * 60 * 60 * 1000;

/** Whether an open database is a backup that no bot has opened yet. */
function isBackup(database: DatabaseSync): boolean {
  return readMark(database, backedUpAt) !== undefined;
}

/** Marks an open database as a backup. `now` is in Unix ms from before the copy began. */
function markAsBackup(database: DatabaseSync, now: number): void {
  writeMark(database, backedUpAt, now);
}

/**
 * What a start must know about a restored backup, or about a file that lacks what came after `lostAfter`. It
 * is noted at the first open and returned for a week, so that a crash in between changes nothing. Unix ms.
 */
function noticeRestore(
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

/** The source and target of a backup. */
interface BackupOptions {
  /** Copies the database into `target`. */
  readonly copyDatabase: () => Promise<void>;
  /** The folder of the blobs. */
  readonly blobs: string;
  /** A new or empty folder. */
  readonly target: string;
}

/**
 * Copies database and blobs into a folder. The database comes first, because every blob that it names is on
 * disk by then, and blobs never change.
 * @throws ParleyError `config` (the folder is not empty), `store-unavailable`
 */
export async function backUpFiles({ copyDatabase, blobs, target }: BackupOptions): Promise<void> {
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
    if ((await readdir(target)).length > 0)
      throw new ParleyError("config", `the folder ${target} is not empty: name a new one for the backup`);
    await copyDatabase();
    await copyBlobs(blobs, join(target, basename(blobs)));
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new ParleyError("store-unavailable", `the backup into ${target} failed (${reason})`, {
      detail: { folder: target, reason },
      cause: error,
    });
  }
}

async function copyBlobs(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await entriesOf(from)) {
    if (!entry.isDirectory()) continue;
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    await mkdir(copy, { recursive: true, mode: 0o700 });
    for (const blob of await entriesOf(source)) {
      // These files are unfinished. Their database entry is written after them.
      if (blob.name.endsWith(".tmp")) continue;
      await copyUnlessMissing(join(source, blob.name), join(copy, blob.name));
    }
  }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return (await unlessMissing(readdir(folder, { withFileTypes: true }))) ?? [];
}

/** Leaves out what expires or is erased during the backup. */
async function copyUnlessMissing(from: string, to: string): Promise<void> {
  // This shares the bytes if the file system supports it.
  await unlessMissing(copyFile(from, to, constants.COPYFILE_FICLONE));
}
