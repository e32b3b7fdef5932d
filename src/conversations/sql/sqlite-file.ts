import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  statfsSync,
  type Dirent,
  type StatsFs,
} from "node:fs";
import { copyFile, mkdir, readdir, statfs } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { right, warning, wrong, type Finding } from "../../core/checks.ts";
import { ParleyError } from "../../core/errors.ts";
import { expectKnownVersion, storeVersion, type RestoredStore } from "../backend.ts";
import { unlessMissing } from "../../support/unless-missing.ts";

const required = [
  "entries",
  "sqlite_autoindex_entries_1",
  "entries_by_expiry",
  "rankings",
  "rankings_by_score",
] as const;

/**
 * Creates the tables in an empty file, and checks those of another one. One of them (`counts`) may be missing
 * there. Returns the version that it had.
 * @throws ParleyError `store-newer` if a later Parley wrote it, `config` if one from before the first release
 * did, or `store-corrupt` if another program did
 */
export function prepareSchema(
  database: DatabaseSync,
  file: string,
  { isBot, tables }: { readonly isBot: boolean; readonly tables: string },
): number {
  database.exec("BEGIN IMMEDIATE");
  try {
    const version = userVersion(database);
    if (version > 0) {
      expectKnownVersion(`the store ${file}`, version);
      checkSchema(database, file);
    } else if (hasTables(database)) {
      throw new ParleyError(
        "store-corrupt",
        `the file ${file} is an SQLite file of another program: set STORE_URL to a file of its own`,
        { detail: { file } },
      );
    }
    database.exec(tables);
    // This is written even if nothing changed, so that a read-only file fails at the start. Only the bot
    // raises it.
    database.exec(`PRAGMA user_version = ${isBot || version === 0 ? storeVersion : version}`);
    database.exec("COMMIT");
    return version === 0 ? storeVersion : version;
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** Without one of these tables, entries would not be found or the first message would fail. */
function checkSchema(database: DatabaseSync, file: string): void {
  const rows = database.prepare("SELECT name FROM sqlite_schema").all();
  const names = new Set(rows.map((row) => String(row["name"])));
  if (required.every((name) => names.has(name))) return;
  throw new ParleyError(
    "store-corrupt",
    `the store ${file} is damaged: its tables are not all there. Stop, keep a copy of it, and restore a backup`,
    { detail: { file } },
  );
}

/** The version that is in the file. It is 0 in an empty one. */
export function userVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
}

function hasTables(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined;
}

/** The index for numbers about the file itself. Earlier versions ignore them without a migration. */
export const fileMarks = "store-marks";

/** Reads the number with a name. Like all of these functions it throws SQLite's errors. */
function readMark(database: DatabaseSync, name: string): number | undefined {
  const row = database
    .prepare("SELECT score FROM rankings WHERE ranking = ? AND member = ?")
    .get(fileMarks, name);
  return row === undefined ? undefined : Number(row["score"]);
}

/** Writes a number, which must be a safe integer. */
function writeMark(database: DatabaseSync, name: string, value: number): void {
  database
    .prepare("INSERT OR REPLACE INTO rankings (ranking, member, score) VALUES (?, ?, ?)")
    .run(fileMarks, name, value);
}

/** Removes a number if it exists. */
function removeMark(database: DatabaseSync, name: string): void {
  database.prepare("DELETE FROM rankings WHERE ranking = ? AND member = ?").run(fileMarks, name);
}

/** A file of 4 MiB, which is rewritten in a moment. */
const smallPages = 1024;
const dueMark = "compaction-due";

/** Whether the whole file can be read or rewritten in a moment. */
export function isSmall(database: DatabaseSync): boolean {
  return Number(database.prepare("PRAGMA page_count").get()?.["page_count"]) <= smallPages;
}

/**
 * Removes the leftovers of deletions in the file. SQLite overwrites a deleted value, but not the copy that
 * stays where a full page was split and the value moved. VACUUM rewrites the file. A large file is marked,
 * and {@link compactIfDue} rewrites it at its next open. It throws SQLite's errors.
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
    // The data is not affected, and the next open tries again.
  }
}

/** With fewer free mebibytes, the next message with a picture may not fit. */
const minFree = 16;
/** Enough for a few days of pictures, in mebibytes. */
const fewFree = 256;

const toMebibytes = ({ bavail, bsize }: Pick<StatsFs, "bavail" | "bsize">): number =>
  Math.floor((bavail * bsize) / 1024 ** 2);

/**
 * Reports the free space of the disk on which a file is, or will be.
 * @throws ParleyError `store-unavailable` if its folder cannot be written
 */
export function reportFolder(file: string, report: (finding: Finding) => void): void {
  const folder = nearestFolder(dirname(file));
  try {
    const free = toMebibytes(statfsSync(folder));
    const remedy = `make room on the disk of ${folder}`;
    if (free < minFree)
      report(wrong("Free space", `only ${free} MiB: new messages are refused soon`, remedy));
    else if (free < fewFree) report(warning("Free space", `only ${free} MiB`, remedy));
    else report(right("Free space", `${free} MiB`));
    report(right("Durability", "every message is on disk before it is acknowledged"));
    // With a dot it is refused for a file in the place of the folder.
    accessSync(`${folder}/.`, constants.W_OK);
  } catch (cause) {
    throw notWritable(file, `${folder} cannot be written`, cause);
  }
}

function nearestFolder(folder: string): string {
  return existsSync(folder) || dirname(folder) === folder ? folder : nearestFolder(dirname(folder));
}

function notWritable(file: string, what: string, cause: unknown): ParleyError {
  const reason = (cause as NodeJS.ErrnoException).code ?? "unknown";
  const remedy = "let Parley's user write in that folder, or set STORE_URL to a file elsewhere";
  return new ParleyError("store-unavailable", `${what} (${reason}): ${remedy}`, {
    detail: { file, reason },
    cause,
  });
}

/** @throws ParleyError `store-unavailable` if the disk of a file is nearly full */
export async function expectRoom(file: string): Promise<void> {
  const free = toMebibytes(await statfs(dirname(file)));
  if (free >= minFree) return;
  const problem = `is nearly out of disk space: ${free} MiB are free, fewer than ${minFree}`;
  throw new ParleyError("store-unavailable", `the store ${file} ${problem}`, { detail: { file, problem } });
}

/**
 * Creates a file and its folder, which only their owner can read, unless they exist. SQLite gives its `-wal`
 * and `-shm` files the permissions of the database.
 * @throws ParleyError `store-unavailable`
 */
export function createPrivateFile(file: string): void {
  const folder = dirname(file);
  try {
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  } catch (cause) {
    throw notWritable(file, `the store ${file} cannot be created`, cause);
  }
}

/** Says by result code what is wrong and what to do. @see https://www.sqlite.org/rescode.html */
const problems: Readonly<Record<number, string>> = {
  5: "is locked by another program",
  8: "cannot be written: give this user write permission to it and its folder",
  10: "cannot be read or written: the disk reports an error or is full",
  11: "is damaged: stop, keep a copy of it, and restore a backup",
  13: "cannot grow: the disk is full or a quota is reached",
  14: "cannot be opened: check the path and the permissions of its folder",
  26: "is not an SQLite file: move it away, or set STORE_URL to another file",
};
/** The result codes for errors of the system, which come from waiting for the disk. */
const systemCodes: Readonly<Record<string, number>> = { EIO: 10, ENOSPC: 13, EDQUOT: 13, EROFS: 8 };
/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const corruptCodes = new Set([11, 26]);

/**
 * Makes a ParleyError of an error of SQLite, with a message that says what to do. It is `store-corrupt` for a
 * damaged file and `store-unavailable` for everything else. ParleyErrors pass unchanged.
 */
export function toSqliteStoreError(error: unknown, file: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = resultCode(error);
  const problem = (code === undefined ? undefined : problems[code]) ?? "failed";
  return new ParleyError(
    code !== undefined && corruptCodes.has(code) ? "store-corrupt" : "store-unavailable",
    `the store ${file} ${problem}`,
    { detail: { file, problem, ...(code === undefined ? {} : { sqlite: code }) }, cause: error },
  );
}

/** Whether another write could succeed, because this write is at fault and not the file or its disk. */
export function isOfOneWrite(error: unknown): boolean {
  const code = resultCode(error);
  return code === undefined || problems[code] === undefined;
}

/** The primary result code, which is the low byte of an extended one. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if (!("errcode" in error)) return "code" in error ? systemCodes[String(error.code)] : undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}

/** More findings would say nothing new. */
const maxFindings = 5;

/**
 * Reads the whole file and compares tables with their indexes. Returns what is wrong, without contents. It
 * throws errors of SQLite that say nothing about the file.
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

/**
 * Locks `<file>-lock` for as long as this process lives, and returns the function that unlocks it. The
 * operating system drops the lock with the process, so it is never stale.
 * @throws ParleyError `store-unavailable` if another process has it
 */
export function lockStore(file: string): () => void {
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

/** Marks an open database as a backup. `now` is in Unix ms from before the copy began. */
export function markAsBackup(database: DatabaseSync, now: number): void {
  writeMark(database, backedUpAt, now);
}

/**
 * What a start must know about a restored backup, or about a file that lacks what came after `lostAfter`. It
 * is noted at the first open and returned for a week, so that a crash in between changes nothing. Unix ms.
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
