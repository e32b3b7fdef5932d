import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { unlessMissing } from "../../src/support/unless-missing.ts";

/** Whether the bytes contain a text, plain or at the beginning of base64. */
export function holds(bytes: Buffer, text: string): boolean {
  return bytes.includes(text) || bytes.includes(Buffer.from(text).toString("base64").slice(0, -4));
}

/**
 * Returns the bytes of every file below a folder. Folders and files that go meanwhile give their names.
 * SQLite's log is read before its database, so that what moves between them is found in one of them.
 */
export async function bytesOfFolder(under: string): Promise<Buffer> {
  const names = await readdir(under, { recursive: true });
  const isLog = (name: string) => name.endsWith("-wal");
  const parts: Buffer[] = [];
  for (const name of [...names.filter(isLog), ...names.filter((one) => !isLog(one))]) {
    const found = await unlessMissing(stat(join(under, name)));
    const bytes = found?.isFile() === true ? await unlessMissing(readFile(join(under, name))) : undefined;
    parts.push(bytes ?? Buffer.from(name));
  }
  return Buffer.concat(parts);
}

/** Returns every key and value, but not the files of the server. */
export async function bytesOfRedis(url: string): Promise<Buffer> {
  const client = await createClient({ url }).connect();
  const parts: Buffer[] = [];
  for (const key of await client.keys("*")) {
    parts.push(Buffer.from(key));
    if ((await client.type(key)) === "string") parts.push(Buffer.from((await client.get(key)) ?? ""));
    else parts.push(Buffer.from((await client.zRange(key, 0, -1)).join("\n")));
  }
  await client.close();
  return Buffer.concat(parts);
}

/** Returns every row of the schema that the URL names, but not the files of the server. */
export async function bytesOfPostgres(url: string): Promise<Buffer> {
  const schema = new URL(url).searchParams.get("schema") ?? "parley";
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const tables = await client.query<{ tablename: string }>(
    "SELECT tablename FROM pg_tables WHERE schemaname = $1 ORDER BY 1",
    [schema],
  );
  const parts: string[] = [];
  for (const { tablename } of tables.rows) {
    const { rows } = await client.query(`SELECT * FROM ${schema}.${tablename}`);
    parts.push(tablename, ...rows.map((row) => Object.values(row as Record<string, unknown>).join("\n")));
  }
  await client.end();
  return Buffer.from(parts.join("\n"));
}
