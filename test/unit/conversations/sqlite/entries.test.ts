import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  openSqliteBackend,
  type SqliteBackend,
} from "../../../../src/conversations/sqlite/sqlite-backend.ts";

let folder: string;
let backend: SqliteBackend;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-entries-"));
  backend = openSqliteBackend(join(folder, "a.db"));
});
afterEach(async () => {
  await backend.close();
  await rm(folder, { recursive: true });
});

const at = (key: string) => ({ space: "record", key }) as const;
const set = (key: string, value: string, expires?: number) =>
  backend.apply([], [{ kind: "set", at: at(key), value, expires }]);
const get = async (key: string) => (await backend.read("record", [key]))[0];

/** Runs a statement as another program would. Reads in the next event loop iteration must see it. */
async function beside(sql: string): Promise<void> {
  const other = new DatabaseSync(join(folder, "a.db"));
  other.exec(sql);
  other.close();
  await new Promise((resolve) => setImmediate(resolve));
}

describe("entries of a file", () => {
  it("are read anew once another program has written to the file", async () => {
    await set("a", "1");
    expect(await get("a")).toBe("1");
    expect(await get("b")).toBeUndefined();
    await beside("UPDATE entries SET value = 'theirs' WHERE key = 'a'");
    expect(await get("a")).toBe("theirs");
    await beside("INSERT INTO entries (namespace, key, value) VALUES ('record', 'b', 'new')");
    expect(await backend.read("record", ["a", "b"])).toEqual(["theirs", "new"]);
    await beside("DELETE FROM entries");
    expect(await backend.has("record", ["a", "b"])).toEqual([false, false]);
  });

  it("are not older than an index or a list of keys that was read before them", async () => {
    for (const read of [
      () => backend.readIndex("i", { order: "lowest-first", offset: 0, max: 1 }),
      () => backend.keys("record")[Symbol.asyncIterator]().next(),
    ]) {
      await set("a", "1");
      expect(await get("a")).toBe("1");
      // This happens in the same iteration of the event loop.
      const written = beside("UPDATE entries SET value = 'theirs' WHERE key = 'a'");
      await read();
      expect(await get("a")).toBe("theirs");
      await written;
    }
  });

  it("are not those of a transaction that was taken back", async () => {
    await set("a", "1");
    expect(await get("a")).toBe("1");
    // The second change fails after the first one was made, since a score must be a number.
    const failing = backend.apply(
      [],
      [
        { kind: "set", at: at("a"), value: "2", expires: undefined },
        { kind: "add-member", index: "i", member: "m", score: Number.NaN },
      ],
    );
    await expect(failing).rejects.toThrow();
    expect(await get("a")).toBe("1");
  });

  it("are whole whatever their size", async () => {
    const large = "x".repeat(70_000);
    await set("large", large);
    expect(await get("large")).toBe(large);
    await set("large", "small");
    expect(await get("large")).toBe("small");
    await set("large", large);
    expect(await get("large")).toBe(large);
    const keys = Array.from({ length: 200 }, (_, index) => `many-${index}`);
    for (const key of keys) await set(key, `${key}:${"y".repeat(60_000)}`);
    const read = await backend.read("record", keys);
    expect(read.map((value) => value?.split(":")[0])).toEqual(keys);
  });
});
