import { randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Store, StoreOptions } from "../../src/conversations/open-store.ts";
import { expiryTime } from "../../src/support/clock.ts";
import { setClockOff } from "../support/clock-off.ts";
import { openRawStore } from "../support/raw-store.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { againOf, answerTurn, beginTurn, editTo, endOf, openKeys } from "../support/turn-steps.ts";
import { folderOf } from "../../src/conversations/keys.ts";

const dayMs = 24 * 60 * 60 * 1000;
/** This is 50 ms. */
const retentionDays = 50 / dayMs;

describeStores("retention", (current, kind) => {
  const use = async <T>(options: Partial<StoreOptions>, work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await current().open(options);
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const secret = `secret-${randomUUID()}`;
  const fill = async (store: Store) => {
    await store.conversations.append("web:1", messageOf("m1", secret));
    await store.conversations.saveSettings("web:1", { title: secret, within: ["web:place"] });
    await store.inbox.accept({ ...eventOf("k1", "web:1"), text: secret });
    return store.conversations.putBlob("web:1", Buffer.from(secret), "text/plain");
  };
  const expireConversation = async (store: Store) => {
    const { hash } = await fill(store);
    const attempt = await beginTurn(store.inbox, ["k1"]);
    await store.inbox.write(attempt, endOf(attempt, secret));
    await store.inbox.write(attempt, { kind: "close" });
    await vi.waitUntil(
      async () => (await store.conversations.recent("web:1", { maxMessages: 9 })).length === 0,
      { timeout: 5000, interval: 20 },
    );
    return hash;
  };

  it("expires messages before the end of the conversation", async () => {
    await use({ retentionDays }, async (store) => {
      await expireConversation(store);
      expect(await store.conversations.find("web:1", "m1")).toBeUndefined();
      // The head outlives the messages by a day, so that numbering goes on.
      expect(await store.conversations.append("web:1", messageOf("m2", "later"))).toBe("appended");
    });
  });

  // SQLite does not show its times. Its sweep is tested below.
  it.skipIf(kind === "sqlite")("expires every entry within a day after the retention", async () => {
    await use({ retentionDays }, async (store) => {
      await expireConversation(store);
      await store.conversations.append("web:1", messageOf("m2", "later"));
      const remaining = await remainingTimes(current().url);
      expect(remaining.length).toBeGreaterThan(3);
      for (const [key, ms] of remaining) expect(ms, key).toBeLessThan(dayMs + 2000);
    });
  });

  // Servers go by their own clocks.
  it.skipIf(kind !== "sqlite")(
    "removes expired conversations from the disk, blobs and indexes included",
    async () => {
      await use({ retentionDays }, async (store) => {
        const hash = await expireConversation(store);
        await store.sweep(Date.now() + 2 * dayMs);
        expect(await store.conversations.getBlob("web:1", hash)).toBeUndefined();
        expect(await store.lists.list("web:", { max: 9 })).toEqual([]);
        expect(await store.conversations.listWithin("web:place")).toEqual([]);
        expect(holds(await current().bytes(), secret)).toBe(false);
        expect(await readdir(join(current().folder, "blobs"))).toEqual([]);
      });
    },
  );

  describe("of turns that are over", () => {
    // Servers go by their own clocks.
    const only = kind === "sqlite" ? it : () => {};
    const known = async (store: Store, ...keys: string[]) =>
      (await store.inbox.read(keys)).map(({ event }) => event.key);
    const pass = async (store: Store, days: number) => await store.sweep(Date.now() + days * dayMs);

    it("keeps them for a week, with all their events", async () => {
      await use({}, async (store) => {
        await answerTurn(store.inbox, [eventOf("a", "web:1"), eventOf("b", "web:1")]);
        await pass(store, 6);
        expect(await known(store, "a", "b")).toEqual(["a", "b"]);
        expect(await store.inbox.change(againOf("a"))).toMatchObject({
          result: "done",
          turn: { turn: { keys: ["a", "b"] } },
        });
        expect(await openKeys(store.inbox)).toEqual(["a"]);
      });
    });

    only("removes them after a week, also where one of their events was edited since", async () => {
      await use({}, async (store) => {
        for (let turn = 0; turn < 3; turn++)
          await answerTurn(store.inbox, [eventOf(`a${turn}`, "web:1"), eventOf(`b${turn}`, "web:1")]);
        // They are not the last turn, so that only the words change.
        for (const key of ["a0", "b1"]) await store.inbox.change(editTo(key, "new words"));
        await pass(store, 6);
        expect(await known(store, "a0", "b0", "a1", "b1")).toEqual(["a0", "b0", "a1", "b1"]);
        await pass(store, 8);
        const raw = await openRawStore(current().url);
        const left = (await raw.all()).filter(([space]) => space === "inbox");
        await raw.close();
        expect(left.map(([, key]) => key)).toEqual([]);
      });
    });

    only("keeps every event of a turn that runs again, until it is over again", async () => {
      await use({}, async (store) => {
        await answerTurn(store.inbox, [eventOf("a", "web:1"), eventOf("b", "web:1")]);
        await store.inbox.change(editTo("b", "new words"));
        await pass(store, 8);
        expect(await known(store, "a", "b")).toEqual(["a", "b"]);
        const attempt = await beginTurn(store.inbox, ["a"]);
        await store.inbox.write(attempt, endOf(attempt, "the answer"));
        await store.inbox.write(attempt, { kind: "close" });
        await pass(store, 8);
        expect(await known(store, "a", "b")).toEqual([]);
      });
    });

    only("keeps them no longer than their question", async () => {
      await use({ retentionDays: 3 }, async (store) => {
        await answerTurn(store.inbox, [eventOf("a", "web:1")]);
        await pass(store, 2);
        expect(await known(store, "a")).toEqual(["a"]);
        await pass(store, 4);
        expect(await known(store, "a")).toEqual([]);
      });
    });
  });

  // Attack: Growth of lists past the retention; names of exported files.
  describe("of blobs", () => {
    afterEach(() => {
      vi.useRealTimers();
    });
    let store: Store;
    beforeEach(async () => {
      store = await current().open({ retentionDays: 1 });
    });

    it("count the blobs of an erased conversation that have not expired", async () => {
      const raw = await openRawStore(current().url);
      const [gone] = await Promise.all(
        ["old", "new"].map((name) => store.conversations.putBlob("web:1", Buffer.from(name), "image/png")),
      );
      // Redis has its own clock, so this simulates the expiry.
      await raw.delete("blob", `${folderOf("web:1")}/${gone?.hash}`);
      expect(await store.erasure.deleteConversation("web:1")).toMatchObject({ blobs: 1 });
      expect(await raw.countMembers(`blobs:${folderOf("web:1")}`)).toBe(0);
      await raw.close();
    });

    it("keep blobs listed that have no expiry, so that they are deleted with their conversation", async () => {
      store = await current().reopen();
      const kept = await store.conversations.putBlob("web:1", Buffer.from("a kept picture"), "image/png");
      store = await current().reopen({ retentionDays: 1 });
      vi.useFakeTimers({ toFake: ["Date", "performance"] });
      for (let day = 0; day < 6; day++) {
        vi.advanceTimersByTime(dayMs);
        await store.conversations.putBlob("web:1", Buffer.from(`picture ${day}`), "image/png");
      }
      expect(await store.conversations.getBlob("web:1", kept.hash)).toBeDefined();
      await store.erasure.deleteConversation("web:1");
      expect(await store.conversations.getBlob("web:1", kept.hash)).toBeUndefined();
    });
  });
});

/** Returns the time to live of each entry, in ms. Entries without expiry hold no text of people. */
async function remainingTimes(url: string): Promise<readonly (readonly [string, number])[]> {
  return url.startsWith("redis:") ? remainingInRedis(url) : remainingInPostgres(url);
}

async function remainingInRedis(url: string): Promise<[string, number][]> {
  const client = await createClient({ url }).connect();
  const keys = (await client.keys("*")).filter(
    (key) => !/^parley:(schema|generation|ranking|lease|meta)/.test(key),
  );
  const times = await Promise.all(
    keys.map(async (key): Promise<[string, number]> => {
      const ms = await client.pTTL(key);
      return [key, ms === -1 ? Number.POSITIVE_INFINITY : ms];
    }),
  );
  await client.close();
  return times;
}

async function remainingInPostgres(url: string): Promise<[string, number][]> {
  const schema = new URL(url).searchParams.get("schema");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ key: string; expires: string | null }>(
    `SELECT key, expires FROM ${schema}.entries WHERE space NOT IN ('meta', 'mark')`,
  );
  await client.end();
  return rows.map(({ key, expires }) => [
    key,
    expires === null ? Number.POSITIVE_INFINITY : Number(expires) - Date.now(),
  ]);
}

describeStores("a store whose process has a clock that jumps two days ahead", (current) => {
  afterEach(() => {
    setClockOff(0);
    vi.restoreAllMocks();
  });

  it("knows what was answered, and keeps order, messages and blobs, until the next start", async () => {
    const store = await current().open({ retentionDays: 1 });
    const live = async (name: string) => {
      await answerTurn(store.inbox, [eventOf(`answered ${name}`, "test:2")]);
      await store.inbox.accept(eventOf(`open ${name}`));
      await store.conversations.append("test:1", messageOf(name));
      const blob = await store.conversations.putBlob("test:1", Buffer.from(name), "image/png");
      return blob.hash;
    };
    const before = await live("before");
    setClockOff(2 * dayMs);
    const during = await live("during");
    await store.sweep(expiryTime() ?? 0);
    for (const name of ["before", "during"])
      expect(await store.inbox.accept(eventOf(`answered ${name}`))).toBe("duplicate");
    for (const open of [await store.inbox.open(), await store.inbox.openIn("test:inbox")])
      expect(open.map(({ event }) => event.key)).toEqual(["open before", "open during"]);
    const recent = await store.conversations.recent("test:1", { maxMessages: 9 });
    expect(recent.map(({ id }) => id)).toEqual(["before", "during"]);
    for (const hash of [before, during])
      expect(await store.conversations.getBlob("test:1", hash)).toBeDefined();
  });
});
