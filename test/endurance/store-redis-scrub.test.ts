import { createClient, type RedisClientType } from "redis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { messageOf } from "../support/store-samples.ts";

const secret = "the-words-that-must-go";

describe.skipIf(!has("redis"))("deleted text in the append-only file of Redis", () => {
  let server: RedisServer;
  let client: RedisClientType;
  let store: Store;
  const lines: string[] = [];
  const open = async () => openStore(server.url, { log: createMemoryLog(lines) });
  beforeEach(async () => {
    lines.length = 0;
    server = await startRedis();
    client = createClient({ url: server.url });
    // The client reconnects by itself.
    client.on("error", () => {});
    await client.connect();
    store = await open();
    await store.conversations.append("test:1", messageOf("m", secret));
    for (let n = 0; n < 20; n++) await store.conversations.append("test:2", messageOf(`m${n}`));
  });
  afterEach(async () => {
    await store.close();
    await client.close();
    await server.remove();
  });

  /** Each entry delays the server's child process by so many microseconds. */
  const slowDown = (microseconds: number) =>
    client.sendCommand(["CONFIG", "SET", "rdb-key-save-delay", String(microseconds)]);
  const persistence = () => client.info("persistence");
  const whenRewriting = () =>
    vi.waitUntil(async () => (await persistence()).includes("aof_rewrite_in_progress:1"), { timeout: 5000 });
  const isInFiles = async () =>
    // A file may go while it is read, so the folder is then read anew.
    (await vi.waitFor(() => bytesOfFolder(server.folder))).includes(secret);
  const whenGone = () => vi.waitUntil(async () => !(await isInFiles()), { timeout: 10_000, interval: 50 });
  const isPending = async () => (await client.exists("parley:scrub")) === 1;

  it("goes when a snapshot was being written", async () => {
    await slowDown(20_000);
    await client.bgSave();
    await slowDown(0);
    await store.erasure.deleteConversation("test:1");
    // The snapshot holds the text too, until the next one.
    await vi.waitUntil(async () => !(await isPending()), { timeout: 10_000 });
    await client.bgSave();
    await whenGone();
  });

  it("goes with one more rewrite for many deletions during one", async () => {
    await slowDown(20_000);
    await client.bgRewriteAof();
    await whenRewriting();
    await slowDown(0);
    const before = await countRewrites();
    await store.erasure.deleteConversation("test:1");
    for (let n = 0; n < 10; n++) await store.erasure.removeMessages("test:2", { ids: [`m${n}`] });
    await whenGone();
    await vi.waitUntil(async () => !(await isPending()), { timeout: 5000 });
    expect((await countRewrites()) - before).toBeLessThanOrEqual(2);
  });

  it("goes when Redis is killed during the rewrite", async () => {
    await slowDown(20_000);
    await store.erasure.deleteConversation("test:1");
    await whenRewriting();
    await server.kill();
    await server.start();
    await vi.waitFor(() => store.ping(), { timeout: 10_000 });
    await store.sweep(Date.now());
    await whenGone();
    await vi.waitUntil(async () => !(await isPending()), { timeout: 5000 });
  });

  async function countRewrites(): Promise<number> {
    return Number(/aof_rewrites:(\d+)/.exec(await persistence())?.[1]);
  }
});
