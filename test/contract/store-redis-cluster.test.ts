import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createStoreChecks } from "../../src/conversations/store-checks.ts";
import { clusterNames } from "../../src/conversations/redis/redis-layout.ts";
import { entryAt } from "../../src/conversations/store-keys.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { has } from "../support/requirements.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { silentLog } from "../support/silent-log.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { storeContract } from "./store.ts";
import { redisPrograms } from "../support/redis-programs.ts";

describe.skipIf(!has("redis"))("with a cluster of three primaries and their replicas", () => {
  let redis: RedisCluster;
  beforeAll(async () => {
    redis = await startCluster();
  }, 60_000);
  afterAll(() => redis.remove());

  storeContract("redis cluster", () => ({
    url: redis.url,
    open: () => openStore(redis.url, { log: silentLog }),
    outage: {
      async begin() {
        await Promise.all(redis.servers.map((server) => server.kill()));
      },
      async end() {
        await Promise.all(redis.servers.map((server) => server.start()));
        await redis.whenWhole();
      },
    },
  }));

  const lines: string[] = [];
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(redis.url, { log: createMemoryLog(lines), deadlineMs: 2000, ...options });
    onTestFinished(() => store.close());
    return store;
  };

  it("spreads conversations over the primaries", async () => {
    const store = await open();
    const ids = Array.from({ length: 20 }, freshId);
    await Promise.all(ids.map((id) => store.conversations.append(id, messageOf("m"))));
    const heads = new Set(ids.map((id) => clusterNames.entry(entryAt.head(id))));
    const byPrimary = (await redis.keys()).map((keys) => keys.filter((key) => heads.has(key)).length);
    expect(byPrimary.reduce((sum, count) => sum + count, 0)).toBe(20);
    expect(Math.min(...byPrimary)).toBeGreaterThan(0);
    for (const id of ids) expect(await store.conversations.recent(id, { maxMessages: 9 })).toHaveLength(1);
  });

  it("forgets a person on every primary", async () => {
    const store = await open();
    const author = { id: "test:secret-person", name: "Ann" };
    const ids = Array.from({ length: 12 }, () => `test:secret-${freshId()}`);
    for (const id of ids) {
      await store.conversations.append(id, { ...messageOf("m"), author });
      await store.conversations.saveSettings(id, { title: "secret", within: ["test:secret-place"] });
      await store.conversations.putBlob(id, Buffer.from("secret"), "image/png");
    }
    expect((await store.conversations.listWithin("test:secret-place")).toSorted()).toEqual(ids.toSorted());
    expect(await store.erasure.forgetAuthor(undefined, author.id)).toMatchObject({
      conversations: 12,
      blobs: 12,
    });
    for (const id of ids) expect(await store.conversations.exists(id)).toBe(false);
    expect((await redis.keys()).flat().filter((key) => key.includes("secret"))).toEqual([]);
  });

  it(
    "finds no deleted text in any server's file: replicas rewrite theirs too",
    { timeout: 60_000 },
    async () => {
      const secret = "the-words-that-must-go";
      const store = await open();
      await store.conversations.append("test:rewritten", messageOf("m", secret));
      const isIn = async ({ folder }: { readonly folder: string }) =>
        // A file that goes while it is read is read anew.
        (await vi.waitFor(() => bytesOfFolder(folder))).includes(secret);
      const holding = async () => {
        const found = await Promise.all(redis.servers.map(isIn));
        return found.filter(Boolean).length;
      };
      await vi.waitUntil(async () => (await holding()) === 2, { timeout: 10_000 });
      await store.erasure.deleteConversation("test:rewritten");
      await vi.waitUntil(async () => (await holding()) === 0, { timeout: 20_000, interval: 50 });
    },
  );

  it("changes keys of all entries, wherever they are", { timeout: 60_000 }, async () => {
    const store = await open();
    const id = freshId();
    await store.conversations.append(id, messageOf("m"));
    await store.close();
    const encryptionKeys = [Buffer.alloc(32, 9).toString("base64")];
    const encrypted = await open({ encryptionKeys });
    expect(await encrypted.reencrypt()).toBeGreaterThan(40);
    expect(await encrypted.reencrypt()).toBe(0);
    expect(await encrypted.conversations.recent(id, { maxMessages: 9 })).toHaveLength(1);
  });

  it("is described, and the doctor looks at each of its servers", async () => {
    const checks = createStoreChecks({ url: redis.url, encryptionKeys: [], log: silentLog });
    const { text } = await runDoctorChecks(checks);
    expect(text).toMatch(
      new RegExp(
        `✓ Store {7}${redisPrograms.title} at 127\\.0\\.0\\.1:\\d+, 127\\.0\\.0\\.1:\\d+ \\(cluster\\), version 3`,
      ),
    );
    expect(text).toContain("✓ Durability  every message is on disk before it is acknowledged");
  });

  it("loses nothing that was acknowledged when primaries fail", { timeout: 120_000 }, async () => {
    lines.length = 0;
    const store = await open({ encryptionKeys: [Buffer.alloc(32, 9).toString("base64")] });
    const id = freshId();
    const key = clusterNames.entry(entryAt.head(id));
    const inbox = clusterNames.entry(entryAt.event("k"));
    const acknowledged: string[] = [];
    const accepted: string[] = [];
    const end = new AbortController();
    const persist = (work: () => Promise<unknown>) => vi.waitFor(work, { timeout: 60_000, interval: 20 });
    const writer = (async () => {
      for (let n = 0; !end.signal.aborted; n++) {
        // Retried under the same id, as a turn is.
        await persist(() => store.conversations.append(id, messageOf(`m${n}`)));
        acknowledged.push(`m${n}`);
        const event = eventOf(freshId());
        await persist(() => store.inbox.accept(event));
        accepted.push(event.key);
      }
    })();
    for (const failing of [key, inbox]) {
      const reached = acknowledged.length + 20;
      await vi.waitUntil(() => acknowledged.length >= reached, { timeout: 30_000, interval: 5 });
      const old = await redis.primaryOf(failing);
      await old.kill();
      await redis.whenReplaced(failing, old);
      await old.start();
      await redis.whenWhole();
    }
    end.abort();
    await writer;
    const kept = await store.conversations.recent(id, { maxMessages: 100_000 });
    expect(kept.map((message) => message.id)).toEqual(acknowledged);
    const listed = new Set((await store.inbox.listOpen()).map(({ event }) => event.key));
    expect(accepted.filter((one) => !listed.has(one))).toEqual([]);
    expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
  });

  it(
    "refuses a write that no replica has, also where another process made it",
    { timeout: 60_000 },
    async () => {
      const encryptionKeys = [Buffer.alloc(32, 9).toString("base64")];
      const [store, other] = [await open({ encryptionKeys }), await open({ encryptionKeys })];
      const key = clusterNames.entry(entryAt.event("k"));
      const primary = await redis.primaryOf(key);
      const others = redis.servers.filter((server) => server !== primary);
      const replicas = await Promise.all(
        others.map(async (server) => ({ server, isReplica: await redis.isReplicaOf(server, primary) })),
      );
      const replica = replicas.find(({ isReplica }) => isReplica)?.server;
      await replica?.kill();
      const unavailable = { code: "store-unavailable" };
      await expect(store.inbox.accept(eventOf(freshId()))).rejects.toMatchObject(unavailable);
      await replica?.start();
      await redis.whenWhole();
      await expect.poll(() => store.inbox.accept(eventOf(freshId()))).toBe("accepted");

      expect(await other.inbox.accept(eventOf(freshId()))).toBe("accepted");
      replica?.pause();
      onTestFinished(() => replica?.resume());
      const event = eventOf(freshId());
      await expect(store.inbox.accept(event)).rejects.toMatchObject(unavailable);
      // Another process finds it there, and its own earlier write is confirmed already.
      await expect(other.inbox.accept(event)).rejects.toMatchObject(unavailable);
      replica?.resume();
      await expect.poll(() => other.inbox.accept(event)).toBe("duplicate");
    },
  );
});
