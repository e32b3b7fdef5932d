import { copyFile, mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { createStoreChecks, openStore, type Store } from "../../src/conversations/open-store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { messageOf } from "../support/store-samples.ts";

/** A message that is missing is looked for again without a wait. */
const hasty: Clock = { ...systemClock, sleep: async () => {} };

let folder: string;
let file: string;
const lines: string[] = [];
beforeEach(async () => {
  lines.length = 0;
  folder = await mkdtemp(join(tmpdir(), "parley-damage-"));
  file = join(folder, "parley.db");
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(`sqlite:${file}`, { log: createMemoryLog(lines), clock: hasty });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}
const fill = (messages: number) =>
  withStore(async (store) => {
    const ids = Array.from({ length: messages }, (_, n) => `m${n}`);
    await Promise.all(
      ids.map((id) => store.conversations.append("web:1", messageOf(id, "words ".repeat(100)))),
    );
  });
const edit = (sql: string) => {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA writable_schema = ON; ${sql}`);
  database.close();
};
const recent = (store: Store) => store.conversations.recent("web:1", { maxMessages: 1000 });
const errors = () => lines.filter((line) => line.startsWith("error"));

/** Changes every occurrence of some bytes in the file itself, and returns how many there were. */
async function replaceInFile(old: string, by: string): Promise<number> {
  const bytes = await readFile(file);
  const handle = await open(file, "r+");
  let count = 0;
  for (let at = bytes.indexOf(old); at !== -1; at = bytes.indexOf(old, at + 1), count++)
    await handle.write(by, at, "latin1");
  await handle.close();
  return count;
}

describe("a damaged SQLite file", () => {
  it("whose index lost entries is reported at the start", async () => {
    await fill(50);
    // These are entries of the index of keys, which holds them a second time.
    edit("DELETE FROM entries WHERE 0; REINDEX");
    const root = await corruptIndex();
    expect(root).toBeGreaterThan(0);
    await withStore(async (store) => {
      expect(await store.findProblems()).toEqual(["the file is damaged: see the log, and restore a backup"]);
    });
    expect(errors()).toEqual([
      expect.stringMatching(/^error the store .* is damaged: messages may be missing/),
    ]);
    expect(errors().join("")).not.toContain("words");
  });

  it("that is large is checked by the doctor", async () => {
    await withStore(async (store) => {
      for (let n = 0; n < 7; n++)
        await store.conversations.append("web:1", messageOf(`m${n}`, "x".repeat(1024 * 1024)));
    });
    await corruptIndex();
    const checks = createStoreChecks(`sqlite:${file}`, { log: createMemoryLog(lines) });
    expect((await runDoctorChecks(checks)).text).toContain("damaged");
  });

  it("whose tables are not all there is refused", async () => {
    await fill(1);
    edit("DROP INDEX rankings_by_score");
    await expect(withStore(recent)).rejects.toMatchObject({
      code: "store-corrupt",
      message: expect.stringContaining("damaged"),
    });
  });

  it("with changed letters in a message does not show them as what was written", async () => {
    await fill(3);
    expect(await replaceInFile('"words words', '"swords word')).toBeGreaterThan(0);
    await expect(withStore(recent)).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("that leads to another message's entry does not show that as the message", async () => {
    await fill(3);
    edit(`UPDATE entries SET value = (SELECT value FROM entries WHERE namespace = 'slot' AND key LIKE '%1')
          WHERE namespace = 'slot' AND key LIKE '%0000000000'`);
    await expect(withStore(recent)).rejects.toMatchObject({ code: "store-corrupt" });
  });

  it("never shows a shorter history because a message is missing", async () => {
    await fill(300);
    edit("DELETE FROM entries WHERE namespace = 'slot' AND key LIKE '%0000000290'");
    await withStore(async (store) => {
      await expect(recent(store)).rejects.toMatchObject({ code: "store-corrupt" });
      await expect(store.conversations.find("web:1", "m290")).rejects.toMatchObject({
        code: "store-corrupt",
      });
      await expect(store.exportConversation("web:1")).rejects.toMatchObject({ code: "store-corrupt" });
      // It can still be deleted.
      await store.erasure.deleteConversation("web:1");
      expect(await recent(store)).toEqual([]);
    });
  });

  it("never shows a shorter history because its last message is missing", async () => {
    await fill(5);
    edit("DELETE FROM entries WHERE namespace = 'slot' AND key LIKE '%0000000004'");
    await expect(withStore(recent)).rejects.toMatchObject({ code: "store-corrupt" });
  });
});

/** Makes an entry of the index of keys point to a key that no row has. Returns the page. */
async function corruptIndex(): Promise<number> {
  const database = new DatabaseSync(file);
  const row = database
    .prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_entries_1'")
    .get();
  const size = Number(database.prepare("PRAGMA page_size").get()?.["page_size"]);
  database.close();
  const root = Number(row?.["rootpage"]);
  const bytes = await readFile(file);
  const at = bytes.lastIndexOf("web:1/", root * size - 1);
  const handle = await open(file, "r+");
  await handle.write("web:0", at, "latin1");
  await handle.close();
  return at >= (root - 1) * size ? root : 0;
}

describe("a SQLite file", () => {
  it("tells that a backup was put in its place", async () => {
    await withStore((store) => store.backup(join(folder, "copy")));
    await fill(3);
    await copyFile(join(folder, "copy", "parley.db"), file);
    await withStore(async (store) => {
      expect(store.restored).toBeDefined();
    });
    expect(errors()).toEqual([]);
    expect(lines).toContainEqual(expect.stringMatching(/^info the store was restored from a backup/));
  });
});
