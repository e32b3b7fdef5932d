import { DatabaseSync } from "node:sqlite";
import { createClient } from "redis";

/** The entries of a store as somebody sees and changes them who can write to it but has no key. */
export interface RawStore {
  get(space: string, key: string): Promise<string>;
  set(space: string, key: string, value: string): Promise<void>;
  delete(space: string, key: string): Promise<void>;
  /** How many members a sorted index has. */
  countMembers(index: string): Promise<number>;
  /** `[space, key, value]` of every entry. */
  all(): Promise<readonly (readonly [string, string, string])[]>;
  close(): Promise<void>;
}

/** Opens a store beside Parley. */
export async function openRawStore(url: string): Promise<RawStore> {
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
