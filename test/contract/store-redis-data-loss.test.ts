import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

const encryptionKeys = [Buffer.alloc(32, 7).toString("base64")];

describe.skipIf(!has("redis"))("a Redis that loses its data", () => {
  let server: RedisServer;
  const opened: Store[] = [];
  const lines: string[] = [];
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(server.url, { log: createMemoryLog(lines), leaseMs: 1500, ...options });
    opened.push(store);
    return store;
  };
  beforeEach(async () => {
    lines.length = 0;
    server = await startRedis(["--appendonly", "no"]);
  });
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close();
    await server.remove();
  });

  const forget = {
    restarted: async () => {
      await server.kill();
      await server.start();
    },
    emptied: async () => {
      const client = await createClient({ url: server.url }).connect();
      await client.flushAll();
      await client.close();
    },
  };
  const losses = () => lines.filter((line) => line.startsWith("error Redis lost its data"));
  const whenUp = (store: Store) => vi.waitFor(() => store.ping(), { timeout: 10_000, interval: 20 });

  it.each(["restarted", "emptied"] as const)(
    "that is %s is noticed once by each instance, which then says so",
    async (how) => {
      const stores = await Promise.all([open(), open()]);
      expect(stores[0].notes().dataLosses).toBe(0);
      await forget[how]();
      for (const store of stores) {
        await whenUp(store);
        await store.ping();
        expect(await store.findProblems()).toEqual([]);
        expect(store.notes()).toEqual({
          problems: [],
          warnings: [expect.stringMatching(/^Redis lost its data, noticed at 20/)],
          dataLosses: 1,
        });
      }
      expect(losses()).toHaveLength(2);
    },
  );

  it("that is restarted with its data is not reported", async () => {
    await server.remove();
    server = await startRedis();
    const store = await open();
    await forget.restarted();
    await whenUp(store);
    expect(losses()).toEqual([]);
  });

  it.each(["restarted", "emptied"] as const)(
    "and is %s keeps what was accepted and not answered, where its reply stands included",
    async (how) => {
      const [one, two] = await Promise.all([open(), open()]);
      const [waiting, running, answered] = [eventOf(freshId()), eventOf(freshId()), eventOf(freshId())];
      for (const event of [waiting, running, answered]) await one.inbox.accept(event);
      const turn = { keys: [running.key], address: { placeholder: "p1" }, attempts: 1 };
      await one.inbox.claimTurn(turn);
      await one.inbox.close([answered.key]);
      await forget[how]();
      await Promise.all([whenUp(one), whenUp(two)]);
      expect(await two.inbox.listOpen()).toEqual([
        { event: waiting, acceptedAt: expect.any(Number) },
        { event: running, acceptedAt: expect.any(Number), turn },
      ]);
      expect(lines).toContainEqual(expect.stringMatching(/^warn accepted messages .* anew {"events":2}/));
    },
  );

  it("does not drop a message that waits for its turn, although the loss was not noticed yet", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    await forget.emptied();
    expect(await store.inbox.isOpen(event.key)).toBe(true);
    expect(await store.inbox.isOpen(freshId())).toBe(false);
    await store.inbox.close([event.key]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
  });

  it("knows an event whose turn ends after the loss as answered", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    await forget.emptied();
    await store.inbox.close([event.key]);
    expect(await store.inbox.accept(event)).toBe("duplicate");
    await whenUp(store);
    expect(await store.inbox.listOpen()).toEqual([]);
  });

  it("does not bring back what another instance has answered", async () => {
    const [one, two] = await Promise.all([open(), open()]);
    const event = eventOf(freshId());
    await one.inbox.accept(event);
    await two.inbox.close([event.key]);
    await one.inbox.listOpen();
    await forget.emptied();
    await whenUp(one);
    expect(await one.inbox.listOpen()).toEqual([]);
  });

  it("restores a turn that an earlier process had accepted and this one resumed", async () => {
    const before = await open();
    const event = eventOf(freshId());
    await before.inbox.accept(event);
    await before.close();
    opened.splice(0);
    const store = await open();
    const [entry] = await store.inbox.listOpen();
    await store.inbox.claimTurn({ keys: [event.key], address: { placeholder: "p" }, attempts: 2 });
    await forget.emptied();
    await whenUp(store);
    expect(await store.inbox.listOpen()).toEqual([
      { ...entry, turn: expect.objectContaining({ attempts: 2 }) },
    ]);
  });

  it("has its version and its mark of encryption again, so that the next start accepts it", async () => {
    const store = await open({ encryptionKeys });
    await forget.emptied();
    // Before the loss is noticed.
    await store.conversations.append("test:1", messageOf("m"));
    await whenUp(store);
    const next = await open({ encryptionKeys });
    expect(await next.conversations.recent("test:1", { maxMessages: 5 })).toHaveLength(1);
    const client = await createClient({ url: server.url }).connect();
    expect(await client.get("parley:schema")).toBe("3");
    await client.close();
    expect(lines.filter((line) => line.includes("not encrypted"))).toEqual([]);
  });

  it("is noticed when a turn loses its lease, before the turn is given up", async () => {
    const store = await open();
    const event = eventOf(freshId());
    await store.inbox.accept(event);
    const listed = await store.queue.run("test:inbox", async (signal) => {
      await forget.emptied();
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      return store.inbox.listOpen();
    });
    expect(listed.map((entry) => entry.event.key)).toEqual([event.key]);
    expect(losses()).toHaveLength(1);
  });
});

describe.skipIf(!has("redis"))("a Redis that refuses writes", () => {
  const start = async (...options: string[]) => {
    const server = await startRedis(options);
    onTestFinished(() => server.remove());
    const store = await openStore(server.url, { log: createMemoryLog([]) });
    onTestFinished(() => store.close());
    const client = await createClient({ url: server.url }).connect();
    onTestFinished(() => client.close());
    return { server, store, client };
  };

  it.each([
    ["has no memory left", "OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
    ["is a replica", "READONLY", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
  ])("because it %s is not ready, and is again when it takes them", async (_, reason, breaks, mends) => {
    const { store, client } = await start();
    await client.sendCommand(breaks);
    expect(await store.findProblems()).toEqual([`refuses writes (${reason})`]);
    await expect(store.inbox.accept(eventOf("e"))).rejects.toMatchObject({ code: "store-unavailable" });
    await client.sendCommand(mends);
    expect(await store.findProblems()).toEqual([]);
  });

  it("because it could not save its snapshot is not ready", async () => {
    const { server, store, client } = await start("--appendonly", "no", "--save", "3600 1");
    // In the place of the snapshot's file.
    await mkdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await vi.waitUntil(async () => (await client.info("persistence")).includes("last_bgsave_status:err"));
    expect(await store.findProblems()).toEqual(["refuses writes (MISCONF)"]);
    await rmdir(join(server.folder, "dump.rdb"));
    await client.bgSave();
    await vi.waitUntil(async () => (await store.findProblems()).length === 0);
  });
});
