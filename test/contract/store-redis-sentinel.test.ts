import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type RedisSentinels, startSentinels } from "../support/redis-sentinels.ts";
import { has } from "../support/requirements.ts";
import { silentLog } from "../support/silent-log.ts";
import { bytesOfFolder } from "../support/store-bytes.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { storeContract } from "./store.ts";
import { redisPrograms } from "../support/redis-programs.ts";

describe.skipIf(!has("redis"))("with sentinels", () => {
  describe("that watch a primary and its replica", () => {
    let redis: RedisSentinels;
    beforeAll(async () => {
      // The contract has no failover: its processes do not try again.
      redis = await startSentinels([], { downAfterMs: 10_000 });
    });
    afterAll(() => redis.remove());

    storeContract("redis sentinels", () => ({
      url: redis.url,
      open: () => openStore(redis.url, { log: silentLog }),
      outage: {
        async begin() {
          for (const server of redis.servers) await server.kill();
        },
        async end() {
          for (const server of redis.servers) await server.start();
          await redis.whenReplicated();
        },
      },
    }));
  });

  describe("a failover", () => {
    let redis: RedisSentinels;
    const lines: string[] = [];
    beforeEach(async () => {
      lines.length = 0;
      redis = await startSentinels();
    });
    afterEach(() => redis.remove());
    const open = async (options: Partial<StoreOptions> = {}, url = redis.url) => {
      const store = await openStore(url, { log: createMemoryLog(lines), deadlineMs: 2000, ...options });
      onTestFinished(() => store.close());
      return store;
    };

    it("is described without a password, and needs only one sentinel that responds", async () => {
      const url = redis.url.replace("redis+sentinel://", "redis+sentinel://127.0.0.1:1,");
      const store = await open({}, url);
      expect(store.describe()).toMatch(
        new RegExp(`^${redisPrograms.title} at parley \\(sentinels 127\\.0\\.0\\.1:1, `),
      );
    });

    it("loses nothing that was acknowledged", { timeout: 90_000 }, async () => {
      const store = await open();
      const id = freshId();
      const acknowledged: string[] = [];
      const end = new AbortController();
      const writer = (async () => {
        for (let n = 0; !end.signal.aborted; n++) {
          // Retried under the same id, as a turn is.
          await vi.waitFor(() => store.conversations.append(id, messageOf(`m${n}`)), {
            timeout: 60_000,
            interval: 20,
          });
          acknowledged.push(`m${n}`);
        }
      })();
      for (let round = 0; round < 3; round++) {
        const reached = acknowledged.length + 30;
        await vi.waitUntil(() => acknowledged.length >= reached, { timeout: 20_000, interval: 5 });
        const old = await redis.primary();
        await old.kill();
        await redis.whenReplaced(old);
        await old.start();
        await redis.whenReplicated();
      }
      end.abort();
      await writer;
      const kept = await store.conversations.recent(id, { maxMessages: 100_000 });
      expect(kept.map((message) => message.id)).toEqual(acknowledged);
      expect(lines.filter((line) => line.startsWith("error"))).toEqual([]);
    });

    it("away from a primary that hangs is followed, and what that one takes later is not acknowledged", async () => {
      const store = await open();
      await store.inbox.accept(eventOf("before"));
      const old = await redis.primary();
      old.pause();
      await redis.whenReplaced(old);
      await vi.waitFor(() => store.ping(), { timeout: 20_000, interval: 50 });
      old.resume();
      await redis.whenReplicated();
      await vi.waitFor(async () => expect(await store.inbox.accept(eventOf("after"))).toBe("accepted"), {
        timeout: 20_000,
      });
      expect(await store.inbox.accept(eventOf("before"))).toBe("duplicate");
    });

    // Sentinels make a server that comes back a replica after up to 20 seconds.
    it("cannot lose a write that no replica has: it is an error", { timeout: 90_000 }, async () => {
      const store = await open();
      await store.inbox.accept(eventOf("before"));
      const primary = await redis.primary();
      const replica = redis.servers.find((server) => server !== primary);
      await replica?.kill();
      await expect(store.inbox.accept(eventOf("alone"))).rejects.toMatchObject({ code: "store-unavailable" });
      const alone = await open({}, `${redis.url}?wait_replicas=0`);
      expect(await alone.inbox.accept(eventOf("alone too"))).toBe("accepted");
      await replica?.start();
      await redis.whenReplicated();
      expect(await store.inbox.accept(eventOf("together"))).toBe("accepted");
    });

    it("cannot lose what another connection finds already written: that is an error too", async () => {
      const [store, other] = [await open(), await open()];
      expect(await other.inbox.accept(eventOf("before"))).toBe("accepted");
      const primary = await redis.primary();
      const replica = redis.servers.find((server) => server !== primary);
      replica?.pause();
      onTestFinished(() => replica?.resume());
      const unavailable = { code: "store-unavailable" };
      await expect(store.inbox.accept(eventOf("alone"))).rejects.toMatchObject(unavailable);
      await expect(other.inbox.accept(eventOf("alone"))).rejects.toMatchObject(unavailable);
      await expect(other.inbox.refuse("alone")).rejects.toMatchObject(unavailable);
      await expect(store.conversations.append("test:alone", messageOf("m"))).rejects.toMatchObject(
        unavailable,
      );
      await expect(other.conversations.append("test:alone", messageOf("m"))).rejects.toMatchObject(
        unavailable,
      );
      replica?.resume();
      await vi.waitFor(async () => expect(await other.inbox.accept(eventOf("alone"))).toBe("duplicate"), {
        timeout: 20_000,
      });
    });

    it("finds no deleted text on either server: replicas rewrite their files too", async () => {
      const secret = "the-words-that-must-go";
      const store = await open();
      await store.conversations.append("test:1", messageOf("m", secret));
      await store.conversations.append("test:2", messageOf("n"));
      await redis.whenReplicated();
      const isIn = async ({ folder }: { readonly folder: string }) =>
        // A file that goes while it is read is read anew.
        (await vi.waitFor(() => bytesOfFolder(folder))).includes(secret);
      await vi.waitUntil(() => isIn(redis.servers[1]), { timeout: 10_000 });
      await store.erasure.deleteConversation("test:1");
      for (const server of redis.servers)
        await vi.waitUntil(async () => !(await isIn(server)), { timeout: 10_000, interval: 50 });
    });

    it("is an error to open where no sentinel knows the name, or none responds", async () => {
      for (const url of [`${redis.url}-other`, "redis+sentinel://u:wrong-secret@127.0.0.1:1/parley"]) {
        const error = await openStore(url, { log: silentLog, deadlineMs: 1000 }).catch(
          (thrown: unknown) => thrown,
        );
        expect(error).toMatchObject({ code: "store-unavailable" });
        expect(String(error)).not.toContain("wrong-secret");
      }
    });
  });
});
