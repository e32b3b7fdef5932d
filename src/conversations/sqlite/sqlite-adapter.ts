import { EventEmitter } from "node:events";
import type { DatabaseSync } from "node:sqlite";
import { keyvStorageCapability, type KeyvStorageAdapter } from "keyv";

/**
 * A Keyv 6 storage adapter over the table `entries` of an open database: one namespace each, prepared once.
 * Expired entries are absent. It throws what SQLite throws.
 */
export function createSqliteAdapter(database: DatabaseSync, namespace: string): KeyvStorageAdapter {
  const live = "namespace = ? AND key = ? AND (expires IS NULL OR expires > ?)";
  const select = database.prepare(`SELECT value FROM entries WHERE ${live}`);
  const probe = database.prepare(`SELECT 1 FROM entries WHERE ${live}`);
  const upsert = database.prepare(
    `INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
     ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
  );
  const remove = database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?");
  const removeAll = database.prepare("DELETE FROM entries WHERE namespace = ?");
  const page = database.prepare(
    `SELECT key, value FROM entries
     WHERE namespace = ? AND key > ? AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT 200`,
  );

  const read = (key: string) => select.get(namespace, key, Date.now())?.["value"] as string | undefined;
  const isThere = (key: string) => probe.get(namespace, key, Date.now()) !== undefined;
  const write = (key: string, value: unknown, expires: number | undefined) => {
    upsert.run(namespace, key, String(value), expires ?? null);
    return true;
  };

  const adapter = {
    namespace,
    async get(key: string) {
      return read(key);
    },
    async getMany(keys: string[]) {
      return keys.map(read);
    },
    async has(key: string) {
      return isThere(key);
    },
    async hasMany(keys: string[]) {
      return keys.map(isThere);
    },
    async set(key: string, value: unknown, expires?: number) {
      return write(key, value, expires);
    },
    async setMany(entries: { key: string; value: unknown; expires?: number }[]) {
      return inTransaction(database, () =>
        entries.map((entry) => write(entry.key, entry.value, entry.expires)),
      );
    },
    async delete(key: string) {
      return remove.run(namespace, key).changes > 0;
    },
    async deleteMany(keys: string[]) {
      return inTransaction(database, () => keys.map((key) => remove.run(namespace, key).changes > 0));
    },
    async clear() {
      removeAll.run(namespace);
    },
    async *iterator() {
      let last = "";
      for (;;) {
        const rows = page.all(namespace, last, Date.now());
        for (const row of rows) yield [row["key"], row["value"]] as [string, string];
        if (rows.length === 0) return;
        last = String(rows.at(-1)?.["key"]);
      }
    },
  };
  const emitter = Object.assign(new EventEmitter(), adapter);
  return Object.assign(emitter, {
    capabilities: keyvStorageCapability(emitter),
  }) as unknown as KeyvStorageAdapter;
}

/** Runs synchronous work in one transaction that is written whole or not at all. */
export function inTransaction<T>(database: DatabaseSync, work: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = work();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // A full disk rolls back by itself; a second ROLLBACK would hide the first error.
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
