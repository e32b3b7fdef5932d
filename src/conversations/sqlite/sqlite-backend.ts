import { chmodSync, constants, type Dirent } from "node:fs";
import { DatabaseSync, backup } from "node:sqlite";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import { systemClock, steadyClock } from "../../support/clock.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  type EntryReader,
  type Space,
  type Backend,
  type Resolves,
  spaces,
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
} from "./sqlite-file.ts";
import {
  createCountsTable,
  createSqliteIndexes,
  createSqliteReader,
  createSqliteWriter,
} from "./sqlite-entries.ts";
import { unlessMissing } from "../../support/unless-missing.ts";

/** How the file is opened. */
interface SqliteOptions {
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
  const { database, trail, restored, lostAfter } = opened;
  const readers = new Map<Space, EntryReader>(
    spaces.map((space) => [space, createSqliteReader(database, space)]),
  );
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
    reader(space) {
      return readers.get(space) as EntryReader;
    },
    apply: (conditions, changes, resolves) => write(() => writer.apply(conditions, changes), resolves),
    count: (limits, changes) => write(() => writer.count(limits, changes), "soon"),
    replace: (at, old, value, resolves) => write(() => writer.replace(at, old, value), resolves),
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
  readonly trail: ReturnType<typeof openCommitTrail>;
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
    return { database, trail, restored, lostAfter };
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
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA cache_size = -${cacheKibibytes};
    `);
    prepareSchema(database, file);
    createCountsTable(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Locks `<file>-lock` for as long as this process lives; returns the function that unlocks it. The operating system
 * drops the lock with the process, so it never goes stale.
 * @throws ParleyError `store-unavailable` when another process has it
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

/** Nothing that a platform still delivers or shows as new is older. */
const knownForMs = 7 * 24 * 60 * 60 * 1000;

/** Whether an open database is a backup that was not opened by a bot since. */
function isBackup(database: DatabaseSync): boolean {
  return readMark(database, backedUpAt) !== undefined;
}

/** Marks an open database as a backup; `now`: Unix ms from before the copy began. */
function markAsBackup(database: DatabaseSync, now: number): void {
  writeMark(database, backedUpAt, now);
}

/**
 * What a start needs to know of a backup that was put in place, or of a file that lacks what came after `lostAfter`:
 * noted at its first open, and returned for a week, so that a crash right after that open changes nothing. Unix ms.
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

/** What a backup copies, and where to. */
interface BackupOptions {
  /** Copies the database into `target`. */
  readonly copyDatabase: () => Promise<void>;
  /** Folder of the blobs. */
  readonly blobs: string;
  /** A new or empty folder. */
  readonly target: string;
}

/**
 * Copies database and blobs into a folder. The database comes first: every blob it names was on disk before, and
 * blobs never change.
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
      // Unfinished files; their database entry is written after them.
      if (blob.name.endsWith(".tmp")) continue;
      await copyUnlessMissing(join(source, blob.name), join(copy, blob.name));
    }
  }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return (await unlessMissing(readdir(folder, { withFileTypes: true }))) ?? [];
}

/** What expires or is erased during the backup is left out. */
async function copyUnlessMissing(from: string, to: string): Promise<void> {
  // Shares the bytes if the file system supports it.
  await unlessMissing(copyFile(from, to, constants.COPYFILE_FICLONE));
}
