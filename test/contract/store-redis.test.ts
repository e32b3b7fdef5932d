import { once } from "node:events";
import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { createClient, type RedisClientType } from "redis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { connectRedis } from "../../src/conversations/redis/redis-connection.ts";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { redisPrograms } from "../support/redis-programs.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { startStallingProxy } from "../support/stalling-proxy.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { storeServerContract } from "./store-server.ts";
import { loopTime } from "../support/loop-time.ts";

const password = "sesame-4711";
const open = async (url: string, options: Partial<StoreOptions> = {}) => {
  const store = await openStore(url, { log: silentLog, ...options });
  onTestFinished(() => store.close());
  return store;
};

describe.skipIf(!has("redis"))("redis: the server", () => {
  let server: RedisServer;
  let client: RedisClientType;
  const url = () => `redis://:${password}@127.0.0.1:${server.port}`;
  beforeAll(async () => {
    server = await startRedis(["--requirepass", password]);
    client = createClient({ url: url() });
    // It reconnects by itself.
    client.on("error", () => {});
    await client.connect();
  });
  afterAll(async () => {
    client.destroy();
    await server.remove();
  });
  storeServerContract(() => ({
    url: url(),
    pause: async () => server.pause(),
    resume: async () => server.resume(),
    kill: () => server.kill(),
    start: () => server.start(),
  }));

  it("is described without its password, and says how much it holds", async () => {
    const store = await open(url());
    expect(store.describe()).toBe(`${redisPrograms.title} at 127.0.0.1:${server.port}`);
    const before = (await store.sizeBytes()) ?? Infinity;
    await store.records.set("large", "x".repeat(2_000_000));
    expect(await store.sizeBytes()).toBeGreaterThan(before + 1_000_000);
  });

  it.each([
    ["a wrong password", () => `redis://:wrong-secret@127.0.0.1:${server.port}`, "store-unavailable"],
    ["no password", () => `redis://127.0.0.1:${server.port}`, "store-unavailable"],
    ["no server", () => "redis://:wrong-secret@127.0.0.1:1", "store-unavailable"],
    ["a malformed URL", () => "redis://:wrong-secret@127.0.0.1:port", "config"],
    ["another scheme", () => "mysql://u:wrong-secret@127.0.0.1/db", "config"],
  ])("fails to open with %s, and shows no password", async (_, address, code) => {
    const error = await open(address(), { deadlineMs: 1000 }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code });
    expect(inspect(error, { depth: 9 })).not.toContain("wrong-secret");
  });

  it("is refused when a newer Parley wrote it", async () => {
    const other = await createClient({ url: `${url()}/3` }).connect();
    await other.set("parley:schema", "99");
    other.destroy();
    await expect(open(`${url()}/3`)).rejects.toMatchObject({ code: "store-newer" });
  });

  it("that lost the head of a conversation finds its end again", async () => {
    const store = await open(url());
    const id = freshId();
    await Promise.all(
      Array.from({ length: 450 }, (_, n) => store.conversations.append(id, messageOf(`m${n}`))),
    );
    const newest = async (maxMessages: number) =>
      (await store.conversations.recent(id, { maxMessages })).map((message) => message.id);
    await client.del(`parley:head::${id}`);
    expect(await newest(2)).toEqual(["m448", "m449"]);
    await client.set(`parley:head::${id}`, JSON.stringify({ value: { next: 17 } }));
    expect(await newest(2)).toEqual(["m448", "m449"]);
    await store.conversations.append(id, messageOf("m450"));
    expect(await newest(1)).toEqual(["m450"]);
  });

  it("that hangs is called unavailable within its deadline", async () => {
    const store = await open(url(), { deadlineMs: 150 });
    server.pause();
    const began = loopTime();
    await expect(store.ping()).rejects.toMatchObject({ code: "store-unavailable" });
    expect(loopTime() - began).toBeLessThan(1000);
    server.resume();
  });

  it("whose data is there again after a restart is not reported as emptied", async () => {
    const lines: string[] = [];
    const store = await open(url(), { log: createMemoryLog(lines) });
    await server.kill();
    await server.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });
    expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });

  describe("that refuses writes", () => {
    it.each([
      ["has no memory left", "OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
      ["is a replica", "READONLY", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
    ])("because it %s is not ready, and is again when it takes them", async (_, reason, breaks, mends) => {
      const store = await open(url());
      await client.sendCommand(breaks);
      expect(await store.findProblems()).toEqual([`refuses writes (${reason})`]);
      await expect(store.inbox.accept(eventOf("e"))).rejects.toMatchObject({ code: "store-unavailable" });
      await client.sendCommand(mends);
      await expect.poll(() => store.findProblems()).toEqual([]);
    });

    it("because it became a replica behind its address is left for the one that the address leads to now", async () => {
      const primary = await startRedis(["--requirepass", password]);
      onTestFinished(() => primary.remove());
      const proxy = await startStallingProxy(server.port);
      onTestFinished(() => proxy.close());
      const lines: string[] = [];
      const store = await open(`redis://:${password}@127.0.0.1:${proxy.port}/5`, {
        log: createMemoryLog(lines),
      });
      await store.records.set("before", 1);
      // The data is there too, as after a replication.
      const copy = await createClient({ url: `redis://:${password}@127.0.0.1:${primary.port}/5` }).connect();
      const old = await createClient({ url: `${url()}/5` }).connect();
      for (const key of await old.keys("*")) await copy.set(key, (await old.get(key)) ?? "");
      await client.sendCommand(["REPLICAOF", "127.0.0.1", "1"]);
      onTestFinished(async () => void (await client.sendCommand(["REPLICAOF", "NO", "ONE"])));
      proxy.leadTo(primary.port);
      await expect(store.records.set("after", 2)).rejects.toMatchObject({ code: "store-unavailable" });
      await expect
        .poll(() =>
          store.records.set("after", 2).then(
            () => true,
            () => false,
          ),
        )
        .toBe(true);
      expect(await store.findProblems()).toEqual([]);
      expect(await copy.exists("parley:record::after")).toBe(1);
      expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
      old.destroy();
      copy.destroy();
    });
  });

  describe("when the connection is closed", () => {
    /** Connects through a proxy that stalls with a command on its way. */
    async function connectAndStall() {
      const proxy = await startStallingProxy(server.port);
      const through = `redis://:${password}@127.0.0.1:${proxy.port}`;
      const connection = await connectRedis(through, { log: silentLog, deadlineMs: 200 });
      proxy.stall();
      return { proxy, ...connection };
    }

    it("while it reconnects leaves no connection behind when the server responds again", async () => {
      const { proxy, client: closed, attempt, close } = await connectAndStall();
      await expect(attempt(() => closed.get("x"))).rejects.toMatchObject({ code: "store-unavailable" });
      await close();
      const ready = once(closed, "ready");
      proxy.resume();
      await ready;
      expect(closed.isReady).toBe(false);
      await proxy.close();
    });

    it("with a command on its way ends at the deadline, and leaves nothing running", async () => {
      const { proxy, client: closed, close } = await connectAndStall();
      const lost = closed.get("x").catch((error: unknown) => error);
      await expect(close()).rejects.toMatchObject({ code: "store-unavailable" });
      expect(closed.isReady).toBe(false);
      expect(await lost).toBeInstanceOf(Error);
      await proxy.close();
    });
  });
});

describe.skipIf(!has("redis"))("redis: a server without an append-only file", () => {
  let server: RedisServer;
  beforeEach(async () => {
    server = await startRedis(["--appendonly", "no", "--save", "3600 1"]);
  });
  afterEach(() => server.remove());

  it("that is restarted has lost its data: each instance says so", async () => {
    const lines: string[] = [];
    const stores = [
      await open(server.url, { log: createMemoryLog(lines) }),
      await open(server.url, { log: createMemoryLog(lines) }),
    ];
    await stores[0]!.inbox.accept(eventOf("k"));
    await server.kill();
    await server.start();
    for (const store of stores) {
      await vi.waitFor(
        async () => expect(await store.findProblems()).toEqual(["has lost its data (see the log)"]),
        { timeout: 10_000, interval: 20 },
      );
    }
    expect(lines.filter((line) => line.startsWith("error the store lost its data"))).toHaveLength(2);
  });

  it("that could not save its snapshot refuses writes and is not ready", async () => {
    const store = await open(server.url);
    const client = await createClient({ url: server.url }).connect();
    // A folder takes the place of the snapshot's file.
    await mkdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await expect.poll(() => client.info("persistence")).toContain("last_bgsave_status:err");
    expect(await store.findProblems()).toEqual(["refuses writes (MISCONF)"]);
    await rmdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await expect.poll(() => store.findProblems()).toEqual([]);
    client.destroy();
  });
});

describe.skipIf(!has("redis"))("redis: deleted text in the append-only file", () => {
  const secret = "the-words-that-must-go";
  const lines: string[] = [];
  let server: RedisServer;
  let client: RedisClientType;
  beforeEach(async () => {
    lines.length = 0;
    server = await startRedis();
    client = createClient({ url: server.url });
    await client.connect();
  });
  afterEach(async () => {
    client.destroy();
    await server.remove();
  });
  const fill = async () => {
    const store = await openStore(server.url, { log: createMemoryLog(lines) });
    await store.conversations.append("test:1", messageOf("m", secret));
    for (let n = 0; n < 20; n++) await store.conversations.append("test:2", messageOf(`m${n}`));
    return store;
  };
  /** Begins a rewrite to which every entry takes that long, and lets the next ones be fast. */
  const beginRewrite = async (microseconds: number) => {
    const slowDown = (by: number) => client.sendCommand(["CONFIG", "SET", "rdb-key-save-delay", String(by)]);
    await slowDown(microseconds);
    await client.bgRewriteAof();
    await vi.waitUntil(async () => (await client.info("persistence")).includes("aof_rewrite_in_progress:1"), {
      interval: 5,
    });
    await slowDown(0);
  };
  const isInFiles = async () =>
    // A file that goes while it is read is read anew.
    (await vi.waitFor(() => bytesOfFolder(server.folder))).includes(secret);
  const whenGone = () => expect.poll(isInFiles).toBe(false);
  const isPending = async () => (await client.exists("parley:scrub")) === 1;

  it("goes when a rewrite was in progress already", async () => {
    const store = await fill();
    await beginRewrite(8000);
    await store.erasure.deleteConversation("test:1");
    expect(await isInFiles()).toBe(true);
    await whenGone();
    await expect.poll(isPending).toBe(false);
    expect(lines.filter((line) => /^(warn|error).*rewrite/.test(line))).toEqual([]);
    await store.close();
  });

  it("goes at the next start when the process ended before the rewrite", async () => {
    const store = await fill();
    await beginRewrite(8000);
    await store.erasure.deleteConversation("test:1");
    await store.close();
    expect(await isPending()).toBe(true);
    await open(server.url);
    await whenGone();
    await expect.poll(isPending).toBe(false);
  });

  it("is reported when the server does not rewrite, and goes at the next sweep", async () => {
    const store = await fill();
    await client.sendCommand(["ACL", "SETUSER", "default", "-bgrewriteaof"]);
    await store.erasure.deleteConversation("test:1");
    const reports = () => lines.filter((line) => line.includes("did not rewrite"));
    await expect.poll(reports).toHaveLength(1);
    expect(reports()[0]).toMatch(/^warn .*deleted text may still be in it: tried again/);
    await store.sweep(Date.now());
    await client.sendCommand(["ACL", "SETUSER", "default", "+bgrewriteaof"]);
    await store.sweep(Date.now());
    await whenGone();
    await store.close();
  });
});
