import { beforeEach, expect, it } from "vitest";
import pg from "pg";
import { createClient } from "redis";
import type { Store, StoreOptions } from "../../src/conversations/open-store.ts";
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

describeStores(
  "a server that loses its data",
  (current, kind) => {
    const ways: readonly Way[] = kind === "redis" ? ["emptied"] : ["emptied", "truncated"];
    const lines: string[] = [];
    beforeEach(() => {
      lines.length = 0;
    });
    const open = (options: Partial<StoreOptions> = {}): Promise<Store> =>
      current().open({ log: createMemoryLog(lines), ...options });
    const losses = () => lines.filter((line) => /^error \w+ lost its data/.test(line));
    const openKeys = async (store: Store) => (await store.inbox.listOpen()).map(({ event }) => event.key);

    it.each(ways)(
      "and is %s: each instance notices once, says so, and stores anew what it had accepted",
      async (way) => {
        const [one, two] = [await open(), await open()];
        const [waiting, running, answered] = [eventOf(freshId()), eventOf(freshId()), eventOf(freshId())];
        for (const event of [waiting, running, answered]) await one.inbox.accept(event);
        const turn = { keys: [running.key], address: { placeholder: "p1" }, attempts: 1 };
        await one.inbox.claimTurn(turn);
        await one.inbox.close([answered.key]);
        expect(one.notes().dataLosses).toBe(0);
        await lose(current(), way);
        for (const store of [one, two]) {
          await store.ping();
          await store.ping();
          expect(await store.findProblems()).toEqual([]);
          expect(store.notes()).toEqual({
            problems: [],
            warnings: [expect.stringMatching(/ lost its data, noticed at 20/)],
            dataLosses: 1,
          });
        }
        expect(losses()).toHaveLength(2);
        expect(await two.inbox.listOpen()).toEqual([
          { event: waiting, acceptedAt: expect.any(Number), state: "open" },
          { event: running, acceptedAt: expect.any(Number), state: "open", turn, attempts: 1 },
        ]);
        expect(lines).toContainEqual(expect.stringMatching(/^warn accepted messages .* anew {"events":2}/));
      },
    );

    it("does not drop a message that waits for its turn, although the loss was not noticed yet", async () => {
      const store = await open();
      const event = eventOf(freshId());
      await store.inbox.accept(event);
      await lose(current(), "emptied");
      expect(await store.inbox.isOpen(event.key)).toBe(true);
      expect(await store.inbox.isOpen(freshId())).toBe(false);
      // Its turn ends after the loss.
      await store.inbox.close([event.key]);
      expect(await store.inbox.accept(event)).toBe("duplicate");
      await store.ping();
      expect(await openKeys(store)).toEqual([]);
    });

    it("accepts the next message at once, and keeps those before it", async () => {
      const store = await open();
      const [before, after] = [eventOf(freshId()), eventOf(freshId())];
      await store.inbox.accept(before);
      await lose(current(), "emptied");
      expect(await store.inbox.accept(after)).toBe("accepted");
      await store.ping();
      expect((await openKeys(store)).toSorted()).toEqual([before.key, after.key].toSorted());
    });

    it("does not bring back what another instance has answered", async () => {
      const [one, two] = [await open(), await open()];
      const event = eventOf(freshId());
      await one.inbox.accept(event);
      await two.inbox.close([event.key]);
      await one.inbox.listOpen();
      await lose(current(), "emptied");
      await one.ping();
      expect(await openKeys(one)).toEqual([]);
    });

    it("restores a turn that an earlier process had accepted and this one resumed", async () => {
      const event = eventOf(freshId());
      await (await open()).inbox.accept(event);
      const store = await current().reopen({ log: createMemoryLog(lines) });
      const [entry] = await store.inbox.listOpen();
      await store.inbox.claimTurn({ keys: [event.key], address: { placeholder: "p" }, attempts: 2 });
      await lose(current(), "emptied");
      await store.ping();
      expect(await store.inbox.listOpen()).toEqual([
        { ...entry, turn: expect.objectContaining({ attempts: 2 }), attempts: 2 },
      ]);
    });

    it("has its version and its mark of encryption again, so that the next start accepts it", async () => {
      const encryptionKeys = [Buffer.alloc(32, 7).toString("base64")];
      const store = await open({ encryptionKeys });
      await lose(current(), "emptied");
      // This happens before the loss is noticed.
      await store.conversations.append("test:1", messageOf("m"));
      await store.ping();
      const next = await open({ encryptionKeys });
      expect(await next.conversations.recent("test:1", { maxMessages: 5 })).toHaveLength(1);
      expect(lines.filter((line) => line.includes("not encrypted"))).toEqual([]);
    });

    it("is noticed when a turn loses its lease, before the turn is given up", async () => {
      const store = await open({ leaseMs: 500 });
      const event = eventOf(freshId());
      await store.inbox.accept(event);
      const listed = await store.queue.run("test:inbox", async (signal) => {
        await lose(current(), "emptied");
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return openKeys(store);
      });
      expect(listed).toEqual([event.key]);
      expect(losses()).toHaveLength(1);
    });
  },
  ["redis", "postgres"],
);
