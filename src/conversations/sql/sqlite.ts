import { chmodSync, existsSync } from "node:fs";
import { DatabaseSync, backup, type SQLInputValue, type StatementSync } from "node:sqlite";
import { wrong } from "../../core/checks.ts";
import { ParleyError } from "../../core/errors.ts";
import { expiryTime, systemClock } from "../../support/clock.ts";
import { isShareUsed, nextPiece } from "../../support/pieces.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  absentStore,
  type Backend,
  type BackendOptions,
  type RestoredStore,
  type WriteCounts,
  raisesVersion,
  reportVersion,
} from "../backend.ts";
import type { EntryAddress } from "../keys.ts";
import { createSqlEngine, type Outcome, type SqlRow, type SqlWrite, type Step } from "./engine.ts";
import { createTables, type SqlDialect, type Statement } from "./statements.ts";
import { createWriteQueue } from "./write-queue.ts";
import {
  compact,
  compactIfDue,
  isSmall,
  prepareSchema,
  lockStore,
  markAsBackup,
  noticeRestore,
  userVersion,
  expectRoom,
  createPrivateFile,
  fileMarks,
  isOfOneWrite,
  toSqliteStoreError,
  findDamage,
  reportFolder,
} from "./sqlite-file.ts";

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
  readonly writes: () => WriteCounts;
}

const damagedFile = "the file is damaged: see the log, and restore a backup";

/**
 * Opens the embedded backend: one file in WAL mode that only its owner can read. Every write is on disk
 * before it resolves, writes of one moment share a transaction, and deleted data is overwritten.
 * @throws ParleyError `store-unavailable`, `store-corrupt`, `store-newer`, each of which says what to do
 */
export function openSqliteBackend(file: string, options: Partial<BackendOptions> = {}): SqliteBackend {
  const { isLook = false, report = () => {} } = options;
  // Only the bot judges the file, because a program beside it may inspect a backup.
  const isBot = raisesVersion(options);
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
  const openedAt = systemClock.now();
  const unlock = isBot || options.exclusive === true ? guard(() => lockStore(file)) : () => {};
  let opened: OpenedFile;
  try {
    opened = guard(() => openFile(file, isBot));
  } catch (error) {
    unlock();
    throw error;
  }
  const { database, restored } = opened;
  reportVersion(`SQLite file ${file}`, opened.version, options);
  if (restored !== undefined && restored.restoredAt >= openedAt)
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
  const statements = createSqliteStatements(database);
  const group = createGroupCommit(database, (step) => statements.run(step));
  const queue = createWriteQueue<SqlWrite>({
    commit: (writes) => group.commit(writes),
    isOfOneWrite,
    clock: systemClock,
  });
  const write = <T>(work: SqlWrite<T>): Promise<T> => guardAsync(() => queue(work) as Promise<T>);
  /** Resolves when everything that was written before is on disk, or has failed. */
  const flush = async (): Promise<void> => {
    await engine.apply([], []).catch(() => {});
  };
  const engine = createSqlEngine(dialect, {
    read: async (step) => guard(() => statements.run(step).rows),
    readValues: (...asked) => guardAsync(() => statements.valuesOf(...asked)),
    write,
    sinceMs: () => 0,
  });

  const scrub = (): void => {
    guard(() => compact(database));
    const outcome = guard(() => database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get());
    if (outcome?.["busy"] !== 0) {
      throw new ParleyError(
        "store-unavailable",
        `deleted data is still in ${file}-wal: another program is reading the store, try again when it has ended`,
        { detail: { file } },
      );
    }
  };

  return {
    ...engine,
    async apply(conditions, changes, resolves) {
      const unmet = await engine.apply(conditions, changes, resolves);
      if (resolves === "scrubbed") scrub();
      return unmet;
    },
    async *scan(what) {
      for await (const found of engine.scan(what))
        if (what !== "indexes" || found.key !== fileMarks) yield found;
    },
    // No other process runs turns on the file.
    lease: async () => true,
    async look(sweepUntil) {
      const swept = sweepUntil === undefined ? 0 : await engine.sweep(sweepUntil);
      if (isDamaged) return { problems: [damagedFile], swept };
      guard(() => database.prepare("SELECT 1 FROM entries LIMIT 1").get());
      await expectRoom(file);
      return { problems: [], swept };
    },
    writes: () => group.counts,
    restored,
    async copyTo(target) {
      await flush();
      const beganAt = systemClock.now();
      await guardAsync(() => retry(() => backup(database, target), { delayMs: delayIfBusy }));
      guard(() => withDatabase(target, (copy) => markAsBackup(copy, beganAt)));
      chmodSync(target, 0o600);
    },
    async close() {
      await flush();
      if (database.isOpen) database.close();
      unlock();
    },
  };
}

interface OpenedFile {
  readonly database: DatabaseSync;
  /** The version that it had. */
  readonly version: number;
  readonly restored: RestoredStore | undefined;
}

function openFile(file: string, judge: boolean): OpenedFile {
  const { database, version } = openDatabase(file, judge);
  try {
    if (judge) compactIfDue(database);
    const restored = judge ? noticeRestore(database, systemClock.now()) : undefined;
    return { database, version, restored };
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

function openDatabase(file: string, isBot: boolean): Pick<OpenedFile, "database" | "version"> {
  createPrivateFile(file);
  const database = new DatabaseSync(file, { timeout: busyTimeoutMs });
  try {
    // First, because a file of another program must stay as it is.
    const version = prepareSchema(database, file, { isBot, tables: createTables(dialect) });
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA cache_size = -${cacheKibibytes};
    `);
    return { database, version };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Every transaction has the file for itself, so nothing is locked row by row. */
const dialect: SqlDialect = {
  tables: { entries: "entries", rankings: "rankings", counts: "counts" },
  space: "namespace",
  parameter: (position) => `?${position}`,
  // A statement is run with each row, which is as fast in this process and copies no text.
  rows: (columns) =>
    `(SELECT ${Object.keys(columns)
      .map((column, at) => `?${at + 1} AS ${column}`)
      .join(", ")}) AS wanted`,
  // One statement for all keys of a space is several times faster than one for each.
  addresses: "(SELECT ?1 AS space, value AS key FROM json_each(?2)) AS wanted",
  inOrder: "",
  // Entries expire by the clock of this process, which is a function of the connection.
  now: "parley_now()",
  since: "0",
  greatest: "max",
  sweep: (max) =>
    `DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ?1 LIMIT ${max})`,
  text: "TEXT",
  integer: "INTEGER",
  storage: { entries: "STRICT", rankings: "STRICT, WITHOUT ROWID", counts: "STRICT, WITHOUT ROWID" },
  byScore: "ranking, score",
};

/** Runs statements, each of which is prepared once. They throw SQLite's errors. */
function createSqliteStatements(database: DatabaseSync) {
  database.function("parley_now", () => expiryTime() ?? 0);
  const prepared = new Map<Statement, StatementSync>();
  const prepare = (statement: Statement): StatementSync => {
    const found = prepared.get(statement) ?? database.prepare(statement.text);
    if (!prepared.has(statement)) {
      // Rows as arrays are faster than as objects.
      found.setReturnArrays(true);
      prepared.set(statement, found);
    }
    return found;
  };
  return {
    run({ statement, rows }: Step): Outcome {
      const ready = prepare(statement);
      const found: SqlRow[] = [];
      let changed = 0;
      for (const row of rows as readonly (readonly SQLInputValue[])[])
        if (statement.isChange) changed += Number(ready.run(...row).changes);
        else found.push(...(ready.all(...row) as unknown as readonly SqlRow[]));
      return { rows: found, changed };
    },
    async valuesOf(addresses: readonly EntryAddress[], statement: Statement) {
      const ready = prepare(statement);
      const values: (string | undefined)[] = addresses.map(() => undefined);
      for (const [space, wanted] of Map.groupBy(addresses.entries(), ([, at]) => at.space))
        for (let from = 0; from < wanted.length;) {
          if (from > 0) await nextPiece();
          const keys = wanted.slice(from).map(([, { key }]) => key);
          // An open statement would hold up checkpoints, so another one reads the rest in a later turn.
          for (const row of ready.iterate(space, JSON.stringify(keys))) {
            const [value] = row as unknown as SqlRow;
            const [position] = wanted[from++] ?? [];
            if (position !== undefined && typeof value === "string") values[position] = value;
            if (isShareUsed()) break;
          }
        }
      return values;
    },
  };
}

/**
 * Commits writes together. With `synchronous = FULL`, SQLite returns from a commit when it is on disk, with
 * `NORMAL` when it survives the end of the process. Each transaction uses what its writes need.
 * @see https://sqlite.org/wal.html
 */
function createGroupCommit(database: DatabaseSync, run: (step: Step) => Outcome) {
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  const version = userVersion(database);
  /** Whether something was committed that the disk may not have. */
  let isAhead = false;
  const counts = { commits: 0, durableCommits: 0, syncs: 0 };
  return {
    counts: counts as WriteCounts,
    commit(writes: readonly SqlWrite[]): readonly unknown[] {
      const isDurable = writes.some(({ resolves }) => resolves !== "soon");
      database.exec(`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
      begin.run();
      try {
        let changed = 0;
        const results = writes.map((write) => {
          const steps = write.steps();
          let next = steps.next();
          while (next.done !== true) {
            const outcome = run(next.value);
            changed += outcome.changed;
            next = steps.next(outcome);
          }
          return next.value;
        });
        const isBehind = isDurable && isAhead && changed === 0;
        // A durable write that found its entry taken waits until that entry is on disk too. SQLite waits for
        // the disk only where a page has changed, so the first one is written again.
        if (isBehind) database.exec(`PRAGMA user_version = ${version}`);
        commit.run();
        if (changed > 0 || isBehind) {
          counts.commits++;
          isAhead = !isDurable;
          if (isDurable) {
            counts.durableCommits++;
            counts.syncs++;
          }
        }
        return results;
      } catch (error) {
        // A full disk rolls back by itself. A second ROLLBACK would hide the first error.
        if (database.isTransaction) database.exec("ROLLBACK");
        throw error;
      }
    },
  };
}
