import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { clusterNames } from "../../src/conversations/redis/redis-script.ts";
import { entryAt } from "../../src/conversations/key-value.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { has } from "../support/requirements.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

describe.skipIf(!has("redis"))("with a cluster of three primaries and their replicas", () => {
  let redis: RedisCluster;
  beforeAll(async () => {
    redis = await startCluster();
  }, 60_000);
  afterAll(() => redis.remove());

  const lines: string[] = [];
  const open = async (options: Partial<StoreOptions> = {}) => {
    const store = await openStore(redis.url, { log: createMemoryLog(lines), deadlineMs: 2000, ...options });
    onTestFinished(() => store.close());
    return store;
  };

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
        // It is tried again under the same id, as a turn is.
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
      // Another process finds the event there. It refuses too, although its own earlier write is confirmed.
      await expect(other.inbox.accept(event)).rejects.toMatchObject(unavailable);
      replica?.resume();
      await expect.poll(() => other.inbox.accept(event)).toBe("duplicate");
    },
  );
});
