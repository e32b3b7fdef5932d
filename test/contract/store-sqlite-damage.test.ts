import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdtemp, open, readdir, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { createStoreChecks, openStore, type Store } from "../../src/conversations/open-store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";

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

describe("a SQLite file without its newest writes", () => {
  /** Leaves the files of a killed process that has written ten messages, which are in the -wal. */
  async function writeAndStop(): Promise<void> {
    const killed = new Map<string, Buffer>();
    await withStore(async (store) => {
      for (let n = 0; n < 10; n++) await store.conversations.append("web:1", messageOf(`w-${n}`));
      for (const name of await readdir(folder)) killed.set(name, await readFile(join(folder, name)));
    });
    for (const name of await readdir(folder)) await rm(join(folder, name));
    for (const [name, bytes] of killed) await writeFile(join(folder, name), bytes);
  }

  const expectLoss = async () => {
    const before = Date.now();
    await withStore(async (store) => {
      expect(await store.findProblems()).toEqual([]);
      expect(store.notes()).toEqual({
        problems: [],
        warnings: [expect.stringMatching(/^the store lacks .*: its -wal file was removed or damaged/)],
        dataLosses: 1,
      });
      // A look-up must not answer what may have been answered since then.
      expect(store.restored?.backedUpAt).toBeLessThan(before);
      expect(store.restored?.restoredAt).toBeGreaterThanOrEqual(before);
    });
    expect(errors()).toEqual([expect.stringMatching(/^error the store lacks .*Parley goes on without them/)]);
    lines.length = 0;
    await withStore(async (store) => expect(store.notes().warnings).toEqual([]));
    expect(errors()).toEqual([]);
  };

  it("because its -wal was removed is reported once", async () => {
    await fill(1);
    await writeAndStop();
    await rm(`${file}-wal`);
    await expectLoss();
  });

  it("because its -wal was cut is reported", async () => {
    await fill(1);
    await writeAndStop();
    await truncate(`${file}-wal`, Math.floor((await stat(`${file}-wal`)).size / 2));
    await expectLoss();
  });

  it("because its -wal was damaged is reported", async () => {
    await fill(1);
    await writeAndStop();
    const handle = await open(`${file}-wal`, "r+");
    await handle.write(Buffer.alloc(8, 0xa5), 0, 8, 4200);
    await handle.close();
    await expectLoss();
  });

  it("because an older copy was put in its place is reported", async () => {
    await fill(1);
    await copyFile(file, join(folder, "older"));
    await withStore((store) => store.inbox.accept(eventOf("e")));
    await copyFile(join(folder, "older"), file);
    await expectLoss();
  });

  it("because it was removed is reported", async () => {
    await fill(1);
    await rm(file);
    await expectLoss();
  });

  it("is not reported after a kill alone", async () => {
    const script = fileURLToPath(new URL("store-child.ts", import.meta.url));
    const child = spawn(process.execPath, [script, "append", `sqlite:${file}`, "web:1", "w", "0", "100000"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    await vi.waitUntil(() => output.includes("w-9\n"));
    child.kill("SIGKILL");
    await once(child, "exit");
    await withStore(async (store) => {
      expect((await recent(store)).length).toBeGreaterThanOrEqual(10);
      expect(store.notes().dataLosses).toBe(0);
    });
    expect(errors()).toEqual([]);
  });

  it("is no loss when a backup was put in its place", async () => {
    await withStore((store) => store.backup(join(folder, "copy")));
    await fill(3);
    await copyFile(join(folder, "copy", "parley.db"), file);
    await withStore(async (store) => {
      expect(store.restored).toBeDefined();
      expect(store.notes().dataLosses).toBe(0);
    });
    expect(errors()).toEqual([]);
    expect(lines).toContainEqual(expect.stringMatching(/^info the store was restored from a backup/));
  });

  it("is left for the bot to report by a program beside it", async () => {
    await fill(1);
    await writeAndStop();
    await rm(`${file}-wal`);
    const beside = await openStore(`sqlite:${file}`, { log: createMemoryLog(lines), exclusive: false });
    await beside.close();
    await expectLoss();
  });
});
