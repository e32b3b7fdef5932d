import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { gunzipSync } from "node:zlib";
import { createClient } from "redis";

/** This key encrypts the sealed stores of `test/fixtures/stores`. */
export const storeKey = Buffer.alloc(32, 7).toString("base64");

/** One key of a Redis, with its time to live in milliseconds. */
type RedisEntry =
  | { readonly key: string; readonly value: string; readonly ttlMs: number | undefined }
  | { readonly key: string; readonly members: readonly { readonly value: string; readonly score: number }[] };

/** Returns everything that a Redis holds. */
export async function dumpRedis(url: string): Promise<readonly RedisEntry[]> {
  const client = await createClient({ url }).connect();
  const entries: RedisEntry[] = [];
  for (const key of (await client.keys("*")).toSorted()) {
    if ((await client.type(key)) === "zset") {
      entries.push({ key, members: await client.zRangeWithScores(key, 0, -1) });
      continue;
    }
    const ttlMs = await client.pTTL(key);
    entries.push({ key, value: (await client.get(key)) ?? "", ttlMs: ttlMs > 0 ? ttlMs : undefined });
  }
  await client.close();
  return entries;
}

const fixture = async (name: string): Promise<Buffer> =>
  gunzipSync(await readFile(new URL(`../fixtures/stores/${name}.gz`, import.meta.url)));

/** Puts a Redis store of an earlier version into an empty server. */
export async function restoreRedis(name: string, url: string): Promise<void> {
  const client = await createClient({ url }).connect();
  for (const entry of JSON.parse((await fixture(`${name}.json`)).toString()) as readonly RedisEntry[]) {
    // The process that had the lease has been gone for longer than any lease lasts.
    if (entry.key.startsWith("parley:lease:")) continue;
    if ("members" in entry) await client.zAdd(entry.key, [...entry.members]);
    else await client.set(entry.key, entry.value, entry.ttlMs === undefined ? {} : { PX: entry.ttlMs });
  }
  await client.close();
}

/** Puts an SQLite store of an earlier version into `<folder>/data`. Its entries last another day. */
export async function restoreSqlite(name: string, folder: string): Promise<void> {
  await mkdir(join(folder, "data"), { recursive: true });
  const file = join(folder, "data", "parley.db");
  await writeFile(file, await fixture(`${name}.db`), { mode: 0o600 });
  const database = new DatabaseSync(file);
  database
    .prepare("UPDATE entries SET expires = ? WHERE expires IS NOT NULL")
    .run(Date.now() + 24 * 60 * 60 * 1000);
  database.close();
}
