import type { DatabaseSync } from "node:sqlite";
import { ParleyError } from "../../core/errors.ts";

/** Each step migrates from version n to n + 1, which `user_version` holds. Never edit a released step, add one. */
export const migrations: readonly ((database: DatabaseSync) => void)[] = [
  (database) => {
    database.exec(`
      CREATE TABLE entries (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        expires INTEGER,
        PRIMARY KEY (namespace, key)
      ) STRICT;
      CREATE INDEX entries_by_expiry ON entries (expires) WHERE expires IS NOT NULL;
      CREATE TABLE rankings (
        ranking TEXT NOT NULL,
        member TEXT NOT NULL,
        score INTEGER NOT NULL,
        PRIMARY KEY (ranking, member)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX rankings_by_score ON rankings (ranking, score);
    `);
  },
  () => {
    // The tables are the same. A version of Parley that does not maintain the indexes by conversation, author and
    // place refuses the file from here on; `fillIndexes` fills them.
  },
  () => {
    // The tables are the same. A version of Parley that neither reads nor writes values bound to their address
    // refuses the file from here on; `reencrypt` rewrites what it wrote.
  },
];

const required = [
  "entries",
  "sqlite_autoindex_entries_1",
  "entries_by_expiry",
  "rankings",
  "rankings_by_score",
] as const;

/**
 * Migrates an open file to the newest version, all steps or none. Its table `rankings` holds the sorted indexes.
 * @throws ParleyError `store-newer` when a later Parley wrote it; `store-corrupt` when another program did
 */
export function migrate(database: DatabaseSync, file: string, steps = migrations): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    const version = userVersion(database);
    if (version > steps.length) {
      throw new ParleyError(
        "store-newer",
        `the store ${file} was written by a newer Parley (its version is ${version}, this one knows ${steps.length}): update Parley, or restore an older backup`,
        { detail: { file, version, known: steps.length } },
      );
    }
    if (version === 0 && hasTables(database)) {
      throw new ParleyError(
        "store-corrupt",
        `the file ${file} is an SQLite file of another program: set STORE_URL to a file of its own`,
        { detail: { file } },
      );
    }
    for (const step of steps.slice(version)) step(database);
    checkSchema(database, file);
    // Written even when nothing changed: a read-only file fails at the start, not at the first message.
    database.exec(`PRAGMA user_version = ${steps.length}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** Without one of these, entries would not be found, or the first message would fail. */
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

function userVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
}

function hasTables(database: DatabaseSync): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() !== undefined;
}
