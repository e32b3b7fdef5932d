import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { backup as backupDatabase, DatabaseSync } from "node:sqlite";
import type { KeyvStorageAdapter } from "keyv";
import { ParleyError } from "../../core/errors.ts";
import { type Backend, type BackendChange, type Place, spaces, type Space } from "../backend.ts";
import { createSqliteAdapter, inTransaction } from "./sqlite-adapter.ts";
import { toSqliteStoreError } from "./sqlite-errors.ts";
import { migrate } from "./sqlite-schema.ts";

export interface SqliteOptions {
  /**
   * Whether a second process is refused. Entries are safe either way; but two bots on one file would both answer
   * what is in the inbox. Default true; false for programs that run no turns.
   */
  readonly exclusive?: boolean | undefined;
}

/** How long a write waits for another program's; it holds up everything else in this process. */
const busyTimeoutMs = 2000;

export interface SqliteBackend extends Backend {
  /** Copies the store into another file while it is in use. The copy is one moment of it, whole. */
  backup(file: string): Promise<void>;
}

/**
 * The embedded backend: one file, made readable to its owner only, WAL, every write on disk before it resolves,
 * deleted text overwritten.
 * @throws ParleyError `store-unavailable`, `store-corrupt`, `store-newer`, each with how to mend it
 */
export function openSqliteBackend(file: string, options: SqliteOptions = {}): SqliteBackend {
  const guard = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      throw toSqliteStoreError(error, file);
    }
  };
  const guardAsync = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw toSqliteStoreError(error, file);
    }
  };
  const unlock = options.exclusive === false ? () => {} : guard(() => lock(file));
  let database: DatabaseSync;
  try {
    database = guard(() => openDatabase(file));
  } catch (error) {
    unlock();
    throw error;
  }
  const adapters = new Map<Space, KeyvStorageAdapter>(
    spaces.map((space) => [space, createSqliteAdapter(database, space)]),
  );
  const write = createWriter(database);
  const rankings = {
    "highest-first": database.prepare(
      "SELECT member, score FROM rankings WHERE ranking = ? ORDER BY score DESC, member DESC LIMIT ? OFFSET ?",
    ),
    "lowest-first": database.prepare(
      "SELECT member, score FROM rankings WHERE ranking = ? ORDER BY score, member LIMIT ? OFFSET ?",
    ),
  };
  const keyPage = database.prepare(
    "SELECT key FROM entries WHERE namespace = ? AND key > ? AND key >= ? AND key < ? ORDER BY key LIMIT 500",
  );
  const removeExpired = database.prepare(
    "DELETE FROM entries WHERE rowid IN (SELECT rowid FROM entries WHERE expires <= ? LIMIT 500)",
  );
  const replace = database.prepare(
    "UPDATE entries SET value = ? WHERE namespace = ? AND key = ? AND value = ?",
  );

  return {
    adapter(space) {
      return adapters.get(space) as KeyvStorageAdapter;
    },
    async apply(ifAbsent, changes) {
      return guard(() => inTransaction(database, () => write(ifAbsent, changes)));
    },
    async replace({ space, key }, old, value) {
      return guard(() => replace.run(value, space, key, old).changes > 0);
    },
    async ranking(name, { order, offset, max }) {
      return guard(() =>
        rankings[order]
          .all(name, max, offset)
          .map((row) => ({ member: String(row["member"]), score: Number(row["score"]) })),
      );
    },
    async *keys(space, prefix) {
      let last = "";
      for (;;) {
        const rows = guard(() => keyPage.all(space, last, prefix, `${prefix}\u{10FFFF}`));
        for (const row of rows) yield String(row["key"]);
        if (rows.length === 0) return;
        last = String(rows.at(-1)?.["key"]);
      }
    },
    async sweep(now) {
      for (let total = 0; ;) {
        const removed = guard(() => Number(removeExpired.run(now).changes));
        total += removed;
        if (removed === 0) return total;
        // A long sweep gives way to what people wait for.
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    async scrub() {
      const outcome = guard(() => database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get());
      if (outcome?.["busy"] !== 0) {
        throw new ParleyError(
          "store-unavailable",
          `what was removed is still in ${file}-wal: another program is reading the store, try again when it has ended`,
          { detail: { file } },
        );
      }
    },
    attempt: guardAsync,
    async ping() {
      guard(() => database.prepare("SELECT 1 FROM entries LIMIT 1").get());
    },
    async backup(target) {
      await guardAsync(() => backupDatabase(database, target));
      chmodSync(target, 0o600);
    },
    async close() {
      if (database.isOpen) database.close();
      unlock();
    },
  };
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
    `);
    migrate(database, file);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Keeps others out for as long as this process lives: the lock is the system's and goes with the process. */
function lock(file: string): () => void {
  const lockFile = `${file}-lock`;
  createPrivateFile(lockFile);
  const holder = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    holder.close();
    throw new ParleyError(
      "store-unavailable",
      `the store ${file} is in use by another Parley: stop that one, give this one a file of its own, or use Redis for several`,
      { detail: { file }, cause: error },
    );
  }
  return () => {
    if (holder.isOpen) holder.close();
  };
}

/** SQLite gives its -wal and -shm files the permissions of the file itself. */
function createPrivateFile(file: string): void {
  const folder = dirname(file);
  try {
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? "unknown";
    throw new ParleyError(
      "store-unavailable",
      `the store ${file} cannot be created (${reason}): check the path and the permissions of its folder`,
      { detail: { file, reason }, cause },
    );
  }
}

function createWriter(database: DatabaseSync) {
  const probe = database.prepare(
    "SELECT 1 FROM entries WHERE namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)",
  );
  const upsert = database.prepare(
    `INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?");
  const keep = database.prepare("UPDATE entries SET expires = ? WHERE namespace = ? AND key = ?");
  const rank = database.prepare(
    `INSERT INTO rankings (ranking, member, score) VALUES (?, ?, ?)
     ON CONFLICT (ranking, member) DO UPDATE SET score = max(score, excluded.score)`,
  );
  const unrank = database.prepare("DELETE FROM rankings WHERE ranking = ? AND member = ?");

  const change = (step: BackendChange): void => {
    switch (step.kind) {
      case "set":
        upsert.run(step.at.space, step.at.key, step.value, step.expires ?? null);
        return;
      case "delete":
        remove.run(step.at.space, step.at.key);
        return;
      case "keep":
        keep.run(step.expires ?? null, step.at.space, step.at.key);
        return;
      case "rank":
        rank.run(step.ranking, step.member, step.score);
        return;
      case "unrank":
        unrank.run(step.ranking, step.member);
    }
  };
  return (ifAbsent: readonly Place[], changes: readonly BackendChange[]): number => {
    const now = Date.now();
    const taken = ifAbsent.findIndex(({ space, key }) => probe.get(space, key, now) !== undefined);
    if (taken === -1) changes.forEach(change);
    return taken;
  };
}
