import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { createClient } from "redis";

/** The entries of a store, as seen and changed by somebody who can write to it but has no key. */
export interface RawStore {
  get(space: string, key: string): Promise<string>;
  set(space: string, key: string, value: string): Promise<void>;
  delete(space: string, key: string): Promise<void>;
  /** Returns how many members a sorted index has. */
  countMembers(index: string): Promise<number>;
  /** Returns `[space, key, value]` of every entry. */
  all(): Promise<readonly (readonly [string, string, string])[]>;
  close(): Promise<void>;
}

/** Opens a store beside Parley. */
export async function openRawStore(url: string): Promise<RawStore> {
  if (url.startsWith("postgres:")) return openPostgres(url);
  return url.startsWith("sqlite:") ? openSqlite(url.slice("sqlite:".length)) : openRedis(url);
}

function openSqlite(file: string): RawStore {
  const database = new DatabaseSync(file);
  return {
    async get(space, key) {
      const row = database
        .prepare("SELECT value FROM entries WHERE namespace = ? AND key = ?")
        .get(space, key);
      return row?.["value"] as string;
    },
    async set(space, key, value) {
      database
        .prepare("INSERT OR REPLACE INTO entries (namespace, key, value) VALUES (?, ?, ?)")
        .run(space, key, value);
    },
    async delete(space, key) {
      database.prepare("DELETE FROM entries WHERE namespace = ? AND key = ?").run(space, key);
    },
    async countMembers(index) {
      const row = database.prepare("SELECT count(*) AS n FROM rankings WHERE ranking = ?").get(index);
      return Number(row?.["n"]);
    },
    async all() {
      const rows = database.prepare("SELECT namespace, key, value FROM entries").all();
      return rows.map((row) => [String(row["namespace"]), String(row["key"]), String(row["value"])] as const);
    },
    async close() {
      database.close();
    },
  };
}

async function openRedis(url: string): Promise<RawStore> {
  const client = await createClient({ url }).connect();
  const nameOf = (space: string, key: string) => `parley:${space}::${key}`;
  return {
    get: async (space, key) => (await client.get(nameOf(space, key))) as string,
    async set(space, key, value) {
      await client.set(nameOf(space, key), value);
    },
    async delete(space, key) {
      await client.del(nameOf(space, key));
    },
    countMembers: (index) => client.zCard(`parley:ranking::${index}`),
    async all() {
      const names = (await client.keys("parley:*::*")).filter((name) => !name.startsWith("parley:ranking"));
      return Promise.all(
        names.map(async (name) => {
          const [, space = "", key = ""] = /^parley:(\w+)::(.*)$/s.exec(name) ?? [];
          return [space, key, (await client.get(name)) ?? ""] as const;
        }),
      );
    },
    async close() {
      await client.close();
    },
  };
}

async function openPostgres(url: string): Promise<RawStore> {
  const schema = new URL(url).searchParams.get("schema") ?? "parley";
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const query = async (text: string, values: readonly string[] = []) =>
    (await client.query<Record<string, string>>(text, [...values])).rows;
  return {
    async get(space, key) {
      const [row] = await query(`SELECT value FROM ${schema}.entries WHERE space = $1 AND key = $2`, [
        space,
        key,
      ]);
      return row?.["value"] as string;
    },
    async set(space, key, value) {
      await query(
        `INSERT INTO ${schema}.entries (space, key, value) VALUES ($1, $2, $3)
         ON CONFLICT (space, key) DO UPDATE SET value = excluded.value, expires = NULL`,
        [space, key, value],
      );
    },
    async delete(space, key) {
      await query(`DELETE FROM ${schema}.entries WHERE space = $1 AND key = $2`, [space, key]);
    },
    async countMembers(index) {
      const [row] = await query(`SELECT count(*) AS n FROM ${schema}.rankings WHERE ranking = $1`, [index]);
      return Number(row?.["n"]);
    },
    async all() {
      const rows = await query(`SELECT space, key, value FROM ${schema}.entries WHERE space <> 'mark'`);
      return rows.map((row) => [String(row["space"]), String(row["key"]), String(row["value"])] as const);
    },
    async close() {
      await client.end();
    },
  };
}
