import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { createStoreChecks, openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { clusterNames } from "../../src/conversations/redis/redis-script.ts";
import { entryAt } from "../../src/conversations/key-value.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type RedisCluster, startCluster } from "../support/redis-cluster.ts";
import { redisPrograms } from "../support/redis-programs.ts";
import { has } from "../support/requirements.ts";
import { runDoctorChecks } from "../support/run-checks.ts";
import { silentLog } from "../support/silent-log.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

const unavailable = { code: "store-unavailable" };
const encryptionKeys = [Buffer.alloc(32, 9).toString("base64")];
const lines: string[] = [];
const open = async (url: string, options: Partial<StoreOptions> = {}) => {
  const store = await openStore(url, { log: createMemoryLog(lines), deadlineMs: 2000, ...options });
  onTestFinished(() => store.close());
  return store;
};
/** Counts how many of the servers have a text in their files. */
async function countHolding(servers: readonly { readonly folder: string }[], text: string): Promise<number> {
  // A file that goes while it is read is read anew.
  const isIn = async (folder: string) => (await vi.waitFor(() => bytesOfFolder(folder))).includes(text);
  const found = await Promise.all(servers.map(({ folder }) => isIn(folder)));
  return found.filter(Boolean).length;
}

describe.skipIf(!has("redis"))("redis: a cluster of three primaries and their replicas", () => {
  let redis: RedisCluster;
  beforeAll(async () => {
    redis = await startCluster();
  }, 60_000);
  afterAll(() => redis.remove());

  it("has conversations on all primaries, and events, settings and files of each", async () => {
    const [store, other] = [await open(redis.url), await open(redis.url)];
    const ids = Array.from({ length: 20 }, freshId);
    for (const id of ids) {
      await store.conversations.append(id, messageOf("m"));
      expect(await store.conversations.append(id, messageOf("m"))).toBe("duplicate");
      expect(await other.inbox.accept(eventOf(`event in ${id}`, id))).toBe("accepted");
    }
    const heads = new Set(ids.map((id) => clusterNames.entry(entryAt.head(id))));
    const byPrimary = (await redis.keys()).map((keys) => keys.filter((key) => heads.has(key)).length);
    expect(byPrimary.reduce((sum, count) => sum + count, 0)).toBe(20);
    expect(Math.min(...byPrimary)).toBeGreaterThan(0);
    for (const id of ids) {
      expect(await other.conversations.recent(id, { maxMessages: 9 })).toHaveLength(1);
      expect(await store.inbox.listOpenIn(id)).toHaveLength(1);
    }
    const turns = ids.map((id) => ({ keys: [`event in ${id}`], address: {}, attempts: 1 }));
    for (const turn of turns) expect(await store.inbox.claimTurn(turn)).toBe(true);
    expect(await other.inbox.claimTurn(turns[0]!)).toBe(false);
    await store.inbox.close(ids.map((id) => `event in ${id}`));
    expect(await other.inbox.listOpen()).toEqual([]);
    expect(await store.queue.run(ids[0]!, async () => "ran")).toBe("ran");
    expect(await store.spending.countTurn("ada", { max: 1, now: Date.now() })).toBeUndefined();
    expect(await other.spending.countTurn("ada", { max: 1, now: Date.now() })).toBeGreaterThan(0);
  });

  it("forgets a person on every primary", async () => {
    const store = await open(redis.url);
    const author = { id: "test:secret-person", name: "Ann" };
    const ids = Array.from({ length: 12 }, () => `test:secret-${freshId()}`);
    for (const id of ids) {
      await store.conversations.append(id, { ...messageOf("m"), author });
      await store.conversations.saveSettings(id, { title: "secret", within: ["test:secret-place"] });
      await store.conversations.putBlob(id, Buffer.from("secret"), "image/png");
    }
    expect((await store.conversations.listWithin("test:secret-place")).toSorted()).toEqual(ids.toSorted());
    const erased = await store.erasure.forgetAuthor(undefined, author.id);
    expect(erased).toMatchObject({ conversations: 12, blobs: 12 });
    for (const id of ids) expect(await store.conversations.exists(id)).toBe(false);
    expect((await redis.keys()).flat().filter((key) => key.includes("secret"))).toEqual([]);
  });

  it("has no deleted text in any server's file: replicas rewrite theirs too", async () => {
    const secret = "the-words-that-must-go";
    const store = await open(redis.url);
    await store.conversations.append("test:rewritten", messageOf("m", secret));
    await expect.poll(() => countHolding(redis.servers, secret)).toBe(2);
    await store.erasure.deleteConversation("test:rewritten");
    await expect.poll(() => countHolding(redis.servers, secret)).toBe(0);
  });

  it("changes keys of all entries, wherever they are", async () => {
    const id = freshId();
    const store = await open(redis.url);
    await store.conversations.append(id, messageOf("m"));
    const encrypted = await open(redis.url, { encryptionKeys });
    expect(await encrypted.reencrypt()).toBeGreaterThan(40);
    expect(await encrypted.reencrypt()).toBe(0);
    expect(await encrypted.conversations.recent(id, { maxMessages: 9 })).toHaveLength(1);
  });

  it("is described, and the doctor looks at each of its servers", async () => {
    const checks = createStoreChecks(redis.url, { log: silentLog });
    const { text } = await runDoctorChecks(checks);
    expect(text).toMatch(
      new RegExp(
        `✓ Store {7}${redisPrograms.title} at 127\\.0\\.0\\.1:\\d+, 127\\.0\\.0\\.1:\\d+ \\(cluster\\), version 4`,
      ),
    );
    expect(text).toContain("✓ Durability  every message is on disk before it is acknowledged");
  });

  it("is unavailable while a primary is down, says so, and goes on when it is back", async () => {
    // Its replica takes many seconds to follow it again.
    const store = await open(`${redis.url}?wait_replicas=0`, { encryptionKeys });
    const id = freshId();
    await store.conversations.append(id, messageOf("before"));
    const primary = await redis.primaryOf(clusterNames.entry(entryAt.head(id)));
    lines.length = 0;
    await primary.kill();
    await expect(store.conversations.append(id, messageOf("after"))).rejects.toMatchObject(unavailable);
    await primary.start();
    await vi.waitFor(() => store.conversations.append(id, messageOf("after")), { interval: 50 });
    const kept = await store.conversations.recent(id, { maxMessages: 9 });
    expect(kept.map((message) => message.id)).toEqual(["before", "after"]);
    expect(lines).toContainEqual(expect.stringMatching(/^warn Redis connection lost/));
    expect(lines).toContainEqual(expect.stringMatching(/^info Redis connection restored/));
  });
});
