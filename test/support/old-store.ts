import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { createClient } from "redis";
import { migrate as migratePostgres } from "../../src/conversations/postgres/postgres-schema.ts";
import { migrate, migrations } from "../../src/conversations/sqlite/sqlite-schema.ts";

interface OldStore {
  /** `expires`: within a day of the last write. */
  readonly entries: readonly {
    readonly space: string;
    readonly key: string;
    readonly value: string;
    readonly expires?: true;
  }[];
  readonly indexes: readonly { readonly index: string; readonly member: string; readonly score: number }[];
}

const hourMs = 60 * 60 * 1000;

/**
 * Writes what version 1 of the store wrote (`test/fixtures/store-v1.json`, dumped from that version): two
 * conversations of Ann and Bob, `discord:10` and `discord:20`, and their inbox entries.
 */
export async function writeOldStore(url: string): Promise<void> {
  const file = new URL("../fixtures/store-v1.json", import.meta.url);
  const old = JSON.parse(await readFile(file, "utf8")) as OldStore;
  if (url.startsWith("sqlite:")) await writeSqlite(url.slice("sqlite:".length), old);
  else if (url.startsWith("redis:")) await writeRedis(url, old);
  else await writePostgres(url, old);
}

async function writeSqlite(file: string, { entries, indexes }: OldStore): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  const database = new DatabaseSync(file);
  // As that version opened it; page splits would leave copies of deleted text otherwise.
  database.exec("PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON");
  migrate(database, file, migrations.slice(0, 1));
  const insert = database.prepare("INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)");
  const index = database.prepare("INSERT INTO rankings (ranking, member, score) VALUES (?, ?, ?)");
  for (const { space, key, value, expires } of entries)
    insert.run(space, key, value, expires === true ? Date.now() + hourMs : null);
  for (const { index: name, member, score } of indexes) index.run(name, member, score);
  database.close();
}

async function writeRedis(url: string, { entries, indexes }: OldStore): Promise<void> {
  const client = await createClient({ url }).connect();
  await client.set("parley:schema", "1");
  for (const { space, key, value, expires } of entries) {
    await client.set(`parley:${space}::${key}`, value);
    if (expires === true) await client.pExpire(`parley:${space}::${key}`, hourMs);
  }
  for (const { index, member, score } of indexes)
    await client.zAdd(`parley:ranking::${index}`, { value: member, score });
  await client.close();
}

/** There was no Postgres in version 1: the same entries without the indexes that later versions have. */
async function writePostgres(url: string, { entries, indexes }: OldStore): Promise<void> {
  const schema = new URL(url).searchParams.get("schema") ?? "parley";
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await migratePostgres(client, schema);
  for (const { space, key, value, expires } of entries)
    await client.query(`INSERT INTO ${schema}.entries (space, key, value, expires) VALUES ($1, $2, $3, $4)`, [
      space,
      key,
      value,
      expires === true ? Date.now() + hourMs : null,
    ]);
  for (const { index, member, score } of indexes)
    await client.query(`INSERT INTO ${schema}.rankings (ranking, member, score) VALUES ($1, $2, $3)`, [
      index,
      member,
      score,
    ]);
  await client.end();
}
