import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { openStore, type StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { type RedisSentinels, startSentinels } from "../support/redis-sentinels.ts";
import { has } from "../support/requirements.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";

describe.skipIf(!has("redis"))("with sentinels", () => {
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
  });
});
