import { expect, it, vi } from "vitest";
import pg from "pg";
import { createClient } from "redis";
import type { StoreOptions } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { eventOf, freshId, messageOf } from "../support/store-samples.ts";
import { describeStores, type TestStore } from "../support/stores.ts";

type Way = "emptied" | "truncated";

/** Removes what is in a store while it is open. */
async function lose({ kind, url }: TestStore, way: Way): Promise<void> {
  if (kind === "redis") {
    const client = await createClient({ url }).connect();
    await client.flushDb();
    client.destroy();
    return;
  }
  const schema = new URL(url).searchParams.get("schema");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const tables = ["entries", "rankings", "counts", "leases"].map((table) => `${schema}.${table}`);
  await client.query(way === "emptied" ? `DROP SCHEMA ${schema} CASCADE` : `TRUNCATE ${tables.join(", ")}`);
  await client.end();
}

const lostData = { code: "store-unavailable", message: expect.stringContaining("lost its data") as string };

describeStores(
  "a server that loses its data",
  (current, kind) => {
    const ways: readonly Way[] = kind === "redis" ? ["emptied"] : ["emptied", "truncated"];

    it.each(ways)("and is %s: each instance says so once, ends, and its next start works", async (way) => {
      const lines: string[] = [];
      const onDataLost = vi.fn();
      const open = (options: Partial<StoreOptions> = {}) =>
        current().open({ log: createMemoryLog(lines), onDataLost, ...options });
      const encryptionKeys = [Buffer.alloc(32, 7).toString("base64")];
      const stores = [await open({ encryptionKeys }), await open({ encryptionKeys })];
      await stores[0]!.inbox.accept(eventOf(freshId()));
      await lose(current(), way);
      for (const store of stores) {
        await expect(store.ping()).rejects.toMatchObject(lostData);
        await expect(store.ping()).rejects.toMatchObject(lostData);
        expect(await store.findProblems()).toEqual(["has lost its data (see the log)"]);
      }
      expect(onDataLost).toHaveBeenCalledTimes(2);
      expect(lines.filter((line) => line.startsWith("error the store lost its data"))).toHaveLength(2);

      const next = await open({ encryptionKeys });
      expect(await next.inbox.open()).toEqual([]);
      expect(await next.inbox.accept(eventOf("after"))).toBe("accepted");
      await next.conversations.append("test:1", messageOf("m"));
      await next.ping();
      expect(await next.conversations.recent("test:1", { maxMessages: 5 })).toHaveLength(1);
    });
  },
  ["redis", "postgres"],
);
