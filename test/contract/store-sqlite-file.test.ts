import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { createListLog } from "../unit/platforms/discord/harness.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { openKeys } from "../support/turn-steps.ts";
import { expectOutage } from "./store-server.ts";

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-file-"));
  file = join(folder, "data", "parley.db");
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const openFile = () => openStore(`sqlite:${file}`, { log: silentLog });

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openFile();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

describe("the SQLite file", () => {
  it("that is new beside blobs of another store is said to be, and no other", async () => {
    const { log, lines } = createListLog();
    const warned = () => lines.filter(({ message }) => message.startsWith("a new store was made beside"));
    const opens = async () => await (await openStore(`sqlite:${file}`, { log })).close();
    await opens();
    await opens();
    expect(warned()).toEqual([]);
    await mkdir(join(folder, "data", "blobs", "ab"), { recursive: true });
    await opens();
    expect(warned()).toEqual([]);
    await rm(file);
    await opens();
    expect(warned()).toHaveLength(1);
  });

  it("is readable to its owner only, with its companion files and folders", async () => {
    await withStore(async (store) => {
      await store.conversations.append("web:1", messageOf("m"));
      const { hash } = await store.conversations.putBlob("web:1", Buffer.from("x"), "text/plain");
      const modes = await Promise.all(
        [file, `${file}-wal`, `${file}-shm`, `${file}-lock`].map(
          async (each) => (await stat(each)).mode & 0o777,
        ),
      );
      expect(modes).toEqual([0o600, 0o600, 0o600, 0o600]);
      expect((await stat(join(folder, "data"))).mode & 0o777).toBe(0o700);
      expect((await stat(join(folder, "data/blobs"))).mode & 0o777).toBe(0o700);
      expect(hash).toHaveLength(64);
    });
  });

  it("keeps everything over a restart", async () => {
    await withStore((store) => store.conversations.append("web:1", messageOf("m")));
    const kept = await withStore((store) => store.conversations.recent("web:1", { maxMessages: 5 }));
    expect(kept.map(({ id }) => id)).toEqual(["m"]);
  });

  it("keeps its log of writes below 20 MB, whatever is written", async () => {
    await withStore(async (store) => {
      const text = "word ".repeat(20_000);
      for (let n = 0; n < 260; n += 1)
        await store.conversations.append(`web:${n}`, {
          ...messageOf(`m${n}`),
          parts: [{ kind: "text", text }],
        });
      expect((await stat(file)).size).toBeGreaterThan(20e6);
      expect((await stat(`${file}-wal`)).size).toBeLessThan(20e6);
    });
  });

  it("holds nothing of what was deleted, also where full pages were split", async () => {
    const random = fc.integer({ min: 0, max: 0x7f_ff_ff_ff });
    const left: number[] = [];
    for (const seed of fc.sample(random, { numRuns: 8, seed: 7319 })) {
      const store = await openStore(`sqlite:${join(folder, String(seed), "parley.db")}`, { log: silentLog });
      let state = seed;
      const below = (max: number) => {
        state = (state * 1_103_515_245 + 12_345) % 0x80_00_00_00;
        return Math.floor((state / 0x80_00_00_00) * max);
      };
      const count = 20 + below(60);
      for (let n = 0; n < count * 3; n++) {
        const key = below(count);
        const word = key % 3 === 0 ? "vault 7319, " : "nothing here";
        await store.records.set(`key ${key}`, word.repeat(1 + below(80)));
      }
      for (let key = 0; key < count; key += 3) await store.records.delete(`key ${key}`);
      // Any erasure removes what deletions left.
      await store.erasure.deleteConversation("web:1");
      if ((await readFile(join(folder, String(seed), "parley.db"))).includes("vault 7319")) left.push(seed);
      await store.close();
    }
    expect(left).toEqual([]);
  });

  it("that is large is written anew at the next start after a deletion", async () => {
    const freePages = () => {
      const database = new DatabaseSync(file, { readOnly: true });
      const pages = Number(database.prepare("PRAGMA freelist_count").get()?.["freelist_count"]);
      database.close();
      return pages;
    };
    await withStore(async (store) => {
      const keys = Array.from({ length: 1500 }, (_, n) => `key ${n}`);
      await Promise.all(keys.map((key) => store.records.set(key, "x".repeat(5000))));
      await Promise.all(keys.slice(0, 300).map((key) => store.records.delete(key)));
      await store.erasure.deleteConversation("web:1");
      expect(freePages()).toBeGreaterThan(100);
    });
    await withStore(async (store) => {
      expect(freePages()).toBe(0);
      expect(await store.records.get("key 700")).toBe("x".repeat(5000));
    });
  });

  it("is refused to a second bot until the first closes it", async () => {
    await withStore(async () => {
      await expect(openFile()).rejects.toMatchObject({
        code: "store-unavailable",
        message: expect.stringContaining("in use by another Parley"),
      });
    });
    await withStore((store) => store.ping());
  });

  it("is unlocked when the bot that held it is killed", async () => {
    const holder = spawn(process.execPath, [childScript, "hold", `sqlite:${file}`], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void holder.kill("SIGKILL"));
    await once(holder.stdout, "data");
    await expect(openFile()).rejects.toMatchObject({ code: "store-unavailable" });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    await withStore((store) => store.ping());
  });

  it("is refused when it is no SQLite file", async () => {
    await mkdir(join(folder, "data"));
    await writeFile(file, "these are not the bytes of a database".repeat(100));
    await expect(openFile()).rejects.toMatchObject({
      code: "store-corrupt",
      message: expect.stringContaining("not an SQLite file"),
    });
    // The refused attempt holds no lock.
    await rm(file);
    await withStore((store) => store.ping());
  });

  it("is refused when it belongs to another program", async () => {
    await mkdir(join(folder, "data"));
    const foreign = new DatabaseSync(file);
    foreign.exec("CREATE TABLE photos (id INTEGER)");
    foreign.close();
    await expect(openFile()).rejects.toMatchObject({
      code: "store-corrupt",
      message: expect.stringContaining("another program"),
    });
  });

  it("is refused when a newer Parley wrote it", async () => {
    await withStore((store) => store.ping());
    const database = new DatabaseSync(file);
    database.exec("PRAGMA user_version = 99");
    database.close();
    await expect(openFile()).rejects.toMatchObject({
      code: "store-newer",
      message: expect.stringContaining("update Parley"),
    });
  });

  it("is reported as damaged when its pages are", async () => {
    await withStore(async (store) => {
      const ids = Array.from({ length: 300 }, (_, n) => `m${n}`);
      await Promise.all(ids.map((id) => store.conversations.append("web:1", messageOf(id, "x".repeat(500)))));
    });
    const size = (await stat(file)).size;
    const handle = await open(file, "r+");
    await handle.write(Buffer.alloc(size - 8192, 0xa5), 0, size - 8192, 8192);
    await handle.close();
    const outcome = withStore((store) => store.conversations.recent("web:1", { maxMessages: 300 }));
    await expect(outcome).rejects.toMatchObject({
      code: "store-corrupt",
      message: expect.stringContaining("damaged"),
    });
  });

  it("is reported as read-only at the start", async () => {
    await withStore((store) => store.ping());
    await chmod(file, 0o444);
    const output = await runChild([process.execPath, childScript, "open", `sqlite:${file}`], {
      asNobody: folder,
    });
    expect(output).toContain("store-unavailable");
    expect(output).toContain("permission");
  });

  it("is reported as unavailable when its folder cannot be created", async () => {
    await writeFile(join(folder, "data"), "a file where a folder should be");
    await expect(openFile()).rejects.toMatchObject({ code: "store-unavailable" });
  });

  it("loses no acknowledged message when the disk is full", async () => {
    // The shell's limit on file sizes simulates a full disk: writes fail half-way.
    const output = await runChild([
      "/bin/sh",
      "-c",
      `trap '' XFSZ; ulimit -f 4000; exec "$0" "$@"`,
      process.execPath,
      childScript,
      "append",
      `sqlite:${file}`,
      "web:full",
      "w",
      "0",
      "100000",
    ]);
    const lines = output.trim().split("\n");
    const acknowledged = lines.filter((line) => /^w-\d+$/.test(line));
    expect(lines.at(-1)).toMatch(/^store-unavailable: .*(full|quota|disk)/);
    expect(acknowledged.length).toBeGreaterThan(50);
    const kept = await withStore((store) => store.conversations.recent("web:full", { maxMessages: 100_000 }));
    expect(kept.map(({ id }) => id).slice(0, acknowledged.length)).toEqual(acknowledged);
    expect(kept.length - acknowledged.length).toBeLessThanOrEqual(1);
    await withStore((store) => store.conversations.append("web:full", messageOf("room again")));
  });

  it("that another program keeps locked is an outage of writes and reads, never an empty result, and passes", async () => {
    const store = await openStore(`sqlite:${file}`, { log: silentLog, exclusive: false });
    onTestFinished(() => store.close());
    const [id, key] = ["web:1", "k"];
    await store.conversations.append(id, messageOf("before"));
    await store.inbox.accept(eventOf(key));
    const { hash } = await store.conversations.putBlob(id, Buffer.from("x"), "image/png");
    const intruder = new DatabaseSync(file);
    intruder.exec("BEGIN EXCLUSIVE");
    await expectOutage(store, { id, key, hash });
    intruder.close();
    expect(await store.conversations.append(id, messageOf("after"))).toBe("appended");
    const kept = await store.conversations.recent(id, { maxMessages: 9 });
    expect(kept.map((message) => message.id)).toEqual(["before", "after"]);
    expect(await openKeys(store.inbox)).toEqual([key]);
  });

  it("loses nothing when several processes write one conversation and one is killed", async () => {
    const written = await Promise.all(
      ["w0", "w1"].map(async (writer) => {
        const ids: string[] = [];
        // The first is killed once.
        for (let life = writer === "w0" ? 0 : 1; life < 2; life++) {
          const words = ["append", `sqlite:${file}`, "web:1", writer, String(ids.length), "60"];
          const child = spawn(process.execPath, [childScript, ...words], {
            stdio: ["ignore", "pipe", "inherit"],
          });
          const gone = once(child, "exit");
          for await (const line of createInterface({ input: child.stdout })) {
            ids.push(line);
            if (life === 0 && ids.length === 25) child.kill("SIGKILL");
            if (child.killed) break;
          }
          await gone;
        }
        return ids;
      }),
    );
    const kept = await withStore((store) => store.conversations.recent("web:1", { maxMessages: 1000 }));
    const ids = kept.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    // These include messages whose writer was killed before it printed them. Its next life found a duplicate.
    for (const [n, own] of written.entries()) {
      expect(own).toEqual(Array.from({ length: 60 }, (_, at) => `w${n}-${at}`));
      expect(ids.filter((id) => id.startsWith(`w${n}-`))).toEqual(own);
    }
  });

  it("reports a blob that was changed on disk", async () => {
    await withStore(async (store) => {
      const { hash } = await store.conversations.putBlob("web:1", Buffer.from("picture"), "image/png");
      const path = await findFile(join(folder, "data/blobs"), hash);
      await writeFile(path, "forgery");
      await expect(store.conversations.getBlob("web:1", hash)).rejects.toMatchObject({
        code: "store-corrupt",
      });
      expect((await readFile(path)).toString()).toBe("forgery");
    });
  });
});

const childScript = fileURLToPath(new URL("store-child.ts", import.meta.url));

async function findFile(under: string, name: string): Promise<string> {
  const { readdir } = await import("node:fs/promises");
  const found = (await readdir(under, { recursive: true })).find((each) => each.endsWith(name));
  if (found === undefined) throw new Error(`no ${name}`);
  return join(under, found);
}

/** Runs a program, and resolves to its output. `asNobody` drops the superuser's rights to write anything. */
async function runChild(command: readonly string[], options: { asNobody?: string } = {}): Promise<string> {
  const [program = "", ...words] = command;
  const nobody = 65_534;
  const stepsDown = options.asNobody !== undefined && process.getuid?.() === 0;
  if (stepsDown)
    for (const each of ["", "data"]) await chown(join(options.asNobody as string, each), nobody, nobody);
  const child = spawn(program, words, {
    stdio: ["ignore", "pipe", "inherit"],
    ...(stepsDown ? { uid: nobody, gid: nobody } : {}),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  await once(child, "close");
  return output;
}
