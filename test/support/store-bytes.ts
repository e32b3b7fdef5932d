import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "redis";

/** Whether the bytes contain a text, plain or at the beginning of base64. */
export function holds(bytes: Buffer, text: string): boolean {
  return bytes.includes(text) || bytes.includes(Buffer.from(text).toString("base64").slice(0, -4));
}

/** Every byte below a folder, file names included. */
export async function bytesOfFolder(under: string): Promise<Buffer> {
  const names = await readdir(under, { recursive: true });
  const parts = await Promise.all(
    names.map(async (name) =>
      (await stat(join(under, name))).isFile() ? readFile(join(under, name)) : Buffer.from(name),
    ),
  );
  return Buffer.concat(parts);
}

/** Every key and value; not the files of the server. */
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
