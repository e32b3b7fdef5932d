import { chmodSync, existsSync } from "node:fs";
import { DatabaseSync, backup, type SQLInputValue } from "node:sqlite";
import { wrong } from "../../core/checks.ts";
import { ParleyError } from "../../core/errors.ts";
import { expiryTime, systemClock } from "../../support/clock.ts";
import { isShareUsed, nextPiece } from "../../support/pieces.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import {
  absentStore,
  type Backend,
  type BackendOptions,
  type Resolves,
  type RestoredStore,
  type Space,
  countedPrefix,
  type IndexChange,
  type IndexMember,
  type IndexPage,
  type BackendChange,
  type PassedLimit,
  type ScoreLimit,
  type WriteCondition,
  raisesVersion,
  reportVersion,
} from "../backend.ts";
import { createGroupCommit, type Written } from "./group-commit.ts";
import {
  compact,
  compactIfDue,
  isSmall,
  prepareSchema,
  lockStore,
  markAsBackup,
  noticeRestore,
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
}

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
  const reader = createSqliteReader(database);
  const indexes = createSqliteIndexes(database);
  const writer = createSqliteWriter(database, indexes);
  const group = createGroupCommit(database, { isOfOneWrite });
  const write = <T>(work: () => Written<T>, resolves: Resolves = "durable"): Promise<T> =>
    guardAsync(() => group.run(work, resolves));
  const keyPage = prepareRows<[key: string, expires: number | null]>(
    database,
    "SELECT key, expires FROM entries WHERE namespace = ? AND key > ? ORDER BY key LIMIT 500",
  );

  return {
    read: (space, keys) => guardAsync(() => reader.read(space, keys)),
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
        const isAlive = createExpiryCheck();
        for (const [key, expires] of rows) if (isAlive(expires)) yield key;
        if (rows.length === 0) return;
        last = rows.at(-1)?.[0] ?? last;
      }
    },
    async expiries(space, keys) {
      return guard(() => reader.expiries(space, keys));
    },
    async *indexNames() {
      yield* guard(() => indexes.names()).filter((name) => name !== fileMarks);
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
      await expectRoom(file);
    },
    writes: () => group.counts,
    problems: () => (isDamaged ? ["the file is damaged: see the log, and restore a backup"] : []),
    restored,
    async copyTo(target) {
      group.flush();
      const beganAt = systemClock.now();
      await guardAsync(() => retry(() => backup(database, target), { delayMs: delayIfBusy }));
      guard(() => withDatabase(target, (copy) => markAsBackup(copy, beganAt)));
      chmodSync(target, 0o600);
    },
    async close() {
      if (database.isOpen) {
        group.flush();
        database.close();
      }
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
    const version = prepareSchema(database, file, isBot);
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA secure_delete = ON;
      PRAGMA trusted_schema = OFF;
      PRAGMA wal_autocheckpoint = ${checkpointPages};
      PRAGMA cache_size = -${cacheKibibytes};
    `);
    createCountsTable(database);
    return { database, version };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Returns whether a row has not expired. The clock is asked once, and only if a row can expire. */
function createExpiryCheck(): (expires: number | null) => boolean {
  let now: number | undefined;
  return (expires) => expires === null || expires > (now ??= expiryTime() ?? 0);
}

/**
 * Creates the synchronous writes of a {@link Backend} within a transaction. Each says whether it has written.
 * It prepares its statements once, and looks everything up before it writes. It throws SQLite's errors.
 */
function createSqliteWriter(database: DatabaseSync, indexes: SqliteIndexes) {
  const select = prepareRows<[value: string, expires: number | null]>(
    database,
    "SELECT value, expires FROM entries WHERE namespace = ? AND key = ?",
  );
  const upsert = database.prepare(
    `INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?");
  const keep = database.prepare("UPDATE entries SET expires = ? WHERE namespace = ? AND key = ?");
  const removeExpired = database.prepare(
    "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT 500)",
  );
  const replaceValue = database.prepare("UPDATE entries SET value = ? WHERE namespace = ? AND key = ?");
  const applyChange = (change: BackendChange): void => {
    switch (change.kind) {
      case "set":
        if (change.expires === "kept") replaceValue.run(change.value, change.at.space, change.at.key);
        else upsert.run(change.at.space, change.at.key, change.value, change.expires ?? null);
        return;
      case "delete":
        remove.run(change.at.space, change.at.key);
        return;
      case "keep":
        keep.run(change.expires ?? null, change.at.space, change.at.key);
        return;
      case "add-member":
      case "append-member":
      case "add-score":
      case "remove-member":
      case "trim-index":
        indexes.apply(change);
    }
  };
  const holds = (
    { space, key, mustExist = false, mustBe }: WriteCondition,
    isAlive: (expires: number | null) => boolean,
  ): boolean => {
    const [value, expires] = select.get(space, key) ?? [];
    const isThere = expires !== undefined && isAlive(expires);
    return mustBe === undefined ? isThere === mustExist : isThere && value === mustBe;
  };
  const findPassed = (limits: readonly ScoreLimit[]): PassedLimit | undefined => {
    for (const [position, { terms, max }] of limits.entries()) {
      const scores = terms.map(({ index, member }) => indexes.readScore(index, member));
      const sum = terms.reduce((total, { weight = 1 }, at) => total + weight * (scores[at] ?? 0), 0);
      if (sum > max) return { position, scores };
    }
    return undefined;
  };

  return {
    /** The same as `Backend.apply`. */
    apply(conditions: readonly WriteCondition[], changes: readonly BackendChange[]): Written<number> {
      const isAlive = createExpiryCheck();
      const found = conditions.findIndex((condition) => !holds(condition, isAlive));
      if (found === -1) changes.forEach(applyChange);
      return { result: found, isWritten: found === -1 };
    },
    /** The same as `Backend.count`. */
    count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Written<PassedLimit | undefined> {
      const passed = findPassed(limits);
      if (passed === undefined) changes.forEach(applyChange);
      return { result: passed, isWritten: passed === undefined && changes.length > 0 };
    },
    /** Removes some expired entries and returns their number. `now` is in Unix ms. */
    removeExpired(now: number): Written<number> {
      const removed = Number(removeExpired.run(now).changes);
      return { result: removed, isWritten: removed > 0 };
    },
  };
}

type SqliteIndexes = ReturnType<typeof createSqliteIndexes>;

/**
 * Creates two tables with the same columns. `rankings` is also sorted by score. `counts` has indexes that are
 * sorted only when they are read, so that a change of a score there changes fewer pages of the file. They
 * throw SQLite's errors.
 */
function createSqliteIndexes(database: DatabaseSync) {
  const rankings = prepare(database, "rankings");
  const counts = prepare(database, "counts");
  const tableOf = (index: string): Table => (index.startsWith(countedPrefix) ? counts : rankings);
  return {
    apply(change: IndexChange): void {
      const { index } = change;
      const table = tableOf(index);
      if (change.kind === "trim-index") table[change.kind].run(index, change.maxScore);
      else if (change.kind === "remove-member") table[change.kind].run(index, change.member);
      else table[change.kind].run(index, change.member, change.score);
    },
    /** The score of a member, or 0 if it does not exist. */
    readScore: (index: string, member: string): number =>
      tableOf(index).readScore.get(index, member)?.[0] ?? 0,
    names: (): string[] =>
      database
        .prepare("SELECT ranking FROM rankings UNION SELECT ranking FROM counts")
        .all()
        .map((row) => String(row["ranking"])),
    readPage(
      index: string,
      { order, after = { score: startOf[order], member: "" }, max }: IndexPage,
    ): IndexMember[] {
      const rows = tableOf(index)[order].all(index, after.score, after.member, max);
      return rows.map(([member, score]) => ({ member, score }));
    },
  };
}

/** This is no migration, because versions that do not know the table ignore it. */
function createCountsTable(database: DatabaseSync): void {
  database.exec(`
    CREATE TABLE IF NOT EXISTS counts (
      ranking TEXT NOT NULL,
      member TEXT NOT NULL,
      score INTEGER NOT NULL,
      PRIMARY KEY (ranking, member)
    ) STRICT, WITHOUT ROWID
  `);
}

/** Scores before those of all members. */
const startOf = { "lowest-first": Number.MIN_SAFE_INTEGER, "highest-first": 2 ** 53 } as const;

type Table = ReturnType<typeof prepare>;

function prepare(database: DatabaseSync, table: "rankings" | "counts") {
  return {
    // The condition leaves the page unchanged if nothing changes.
    "add-member": database.prepare(
      `INSERT INTO ${table} (ranking, member, score) VALUES (?, ?, ?)
       ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score WHERE excluded.score > score`,
    ),
    "append-member": database.prepare(
      `INSERT INTO ${table} (ranking, member, score)
       VALUES (?1, ?2, max(?3, coalesce((SELECT max(score) + 1 FROM ${table} WHERE ranking = ?1), ?3)))
       ON CONFLICT (ranking, member) DO UPDATE SET score = excluded.score`,
    ),
    "add-score": database.prepare(
      `INSERT INTO ${table} (ranking, member, score) VALUES (?, ?, ?)
       ON CONFLICT (ranking, member) DO UPDATE SET score = score + excluded.score`,
    ),
    "remove-member": database.prepare(`DELETE FROM ${table} WHERE ranking = ? AND member = ?`),
    "trim-index": database.prepare(`DELETE FROM ${table} WHERE ranking = ? AND score <= ?`),
    readScore: prepareRows<[score: number]>(
      database,
      `SELECT score FROM ${table} WHERE ranking = ? AND member = ?`,
    ),
    // If the limit is only a parameter, SQLite compiles the statement again each time it is bound.
    "highest-first": prepareRows<[member: string, score: number]>(
      database,
      `SELECT member, score FROM ${table} WHERE ranking = ? AND (score, member) < (?, ?)
       ORDER BY score DESC, member DESC LIMIT ? + 0`,
    ),
    "lowest-first": prepareRows<[member: string, score: number]>(
      database,
      `SELECT member, score FROM ${table} WHERE ranking = ? AND (score, member) > (?, ?)
       ORDER BY score, member LIMIT ? + 0`,
    ),
  };
}

/** Creates the reads of a {@link Backend}. They throw SQLite's errors. */
function createSqliteReader(database: DatabaseSync) {
  // One statement for any number of keys is faster than one for each.
  const lookUp = (columns: string): string =>
    `SELECT wanted.key, expires, ${columns} FROM json_each(?2) AS wanted
     CROSS JOIN entries ON namespace = ?1 AND entries.key = wanted.value`;
  const select = prepareRows<[position: number, expires: number | null, value: string]>(
    database,
    lookUp("entries.value"),
  );
  const probe = prepareRows<[position: number, expires: number | null]>(database, lookUp("1"));
  return {
    async read(space: Space, keys: readonly string[]): Promise<(string | undefined)[]> {
      const isAlive = createExpiryCheck();
      const values: (string | undefined)[] = keys.map(() => undefined);
      for (let from = 0; from < keys.length;) {
        if (from > 0) await nextPiece();
        let end = keys.length;
        // An open statement would hold up checkpoints, so another one reads the rest in a later turn.
        for (const [position, expires, value] of select.iterate(space, JSON.stringify(keys.slice(from)))) {
          if (isAlive(expires)) values[from + position] = value;
          if (!isShareUsed()) continue;
          end = from + position + 1;
          break;
        }
        from = end;
      }
      return values;
    },
    has(space: Space, keys: readonly string[]): boolean[] {
      const isAlive = createExpiryCheck();
      const rows = probe.all(space, JSON.stringify(keys)).filter(([, expires]) => isAlive(expires));
      const positions = new Set(rows.map(([position]) => position));
      return keys.map((_, position) => positions.has(position));
    },
    expiries(space: Space, keys: readonly string[]): (number | undefined)[] {
      const found = new Map(probe.all(space, JSON.stringify(keys)).map(([position, at]) => [position, at]));
      return keys.map((_, position) => found.get(position) ?? undefined);
    },
  };
}

/** A prepared statement whose rows are arrays of its columns. It throws SQLite's errors. */
interface RowStatement<Row extends readonly unknown[]> {
  get(...values: readonly SQLInputValue[]): Row | undefined;
  all(...values: readonly SQLInputValue[]): readonly Row[];
  iterate(...values: readonly SQLInputValue[]): Iterable<Row>;
}

/** Prepares a frequent statement. Rows as arrays are faster than as objects. `Row` is not checked. */
function prepareRows<Row extends readonly unknown[]>(database: DatabaseSync, sql: string): RowStatement<Row> {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return {
    get: (...values) => statement.get(...values) as unknown as Row | undefined,
    all: (...values) => statement.all(...values) as unknown as readonly Row[],
    iterate: (...values) => statement.iterate(...values) as unknown as Iterable<Row>,
  };
}
