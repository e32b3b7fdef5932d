import { randomBytes, randomUUID } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { createClient } from "redis";
import { expect, it, vi } from "vitest";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { holds } from "../support/store-bytes.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const newKey = () => randomBytes(32).toString("base64");
const dayMs = 24 * 60 * 60 * 1000;
/** Half a second. */
const retentionDays = 500 / dayMs;

describeStores("at rest", (current, kind) => {
  const use = async <T>(options: Partial<StoreOptions>, work: (store: Store) => Promise<T>): Promise<T> => {
    const store = await openStore(current().url, { log: silentLog, ...options });
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
    await store.inbox.accept({ ...eventOf("k1"), text: secret });
    return store.conversations.putBlob("web:1", Buffer.from(secret), "text/plain");
  };
  const check = async (store: Store, hash: string) => {
    const [message] = await store.conversations.recent("web:1", { maxMessages: 1 });
    expect(message?.parts).toEqual([{ kind: "text", text: secret }]);
    expect((await store.conversations.settings("web:1")).title).toBe(secret);
    expect((await store.inbox.listOpen())[0]?.event).toMatchObject({ text: secret });
    expect(Buffer.from((await store.conversations.getBlob("web:1", hash))?.bytes ?? []).toString()).toBe(
      secret,
    );
  };

  it("stores readable text without a key (control for the next tests)", async () => {
    await use({}, async (store) => {
      await fill(store);
      expect(await current().bytes()).toSatisfy((bytes: Buffer) => bytes.includes(secret));
    });
  });

  it("stores no readable text or file with a key, and reads everything", async () => {
    const encryptionKeys = [newKey()];
    const { hash } = await use({ encryptionKeys }, async (store) => {
      const ref = await fill(store);
      expect(store.describe()).toContain("encrypted");
      expect(holds(await current().bytes(), secret)).toBe(false);
      return ref;
    });
    await use({ encryptionKeys }, (store) => check(store, hash));
  });

  it("fails to open without its key or with another", async () => {
    await use({ encryptionKeys: [newKey()] }, fill);
    for (const encryptionKeys of [[], [newKey()]]) {
      await expect(openStore(current().url, { log: silentLog, encryptionKeys })).rejects.toMatchObject({
        code: "config",
        message: expect.stringContaining("STORE_ENCRYPTION_KEYS"),
      });
    }
  });

  it("changes keys, also from none to one, while in use; the old key is not needed afterwards", async () => {
    const [one, two] = [newKey(), newKey()];
    const { hash } = await use({}, fill);
    await use({ encryptionKeys: [one] }, async (store) => {
      await check(store, hash);
      expect(await store.reencrypt()).toBeGreaterThan(4);
      expect(await store.reencrypt()).toBe(0);
    });
    expect(holds(await current().bytes(), secret)).toBe(false);
    await use({ encryptionKeys: [two, one] }, async (store) => {
      const writing = Array.from({ length: 50 }, (_, n) =>
        store.conversations.append("web:2", messageOf(`x${n}`)),
      );
      await Promise.all([store.reencrypt(), ...writing]);
      await store.reencrypt();
    });
    await use({ encryptionKeys: [two] }, async (store) => {
      await check(store, hash);
      expect(await store.conversations.recent("web:2", { maxMessages: 99 })).toHaveLength(50);
      expect(await store.reencrypt()).toBe(0);
    });
  });

  const expireConversation = async (store: Store) => {
    const { hash } = await fill(store);
    await store.inbox.close(["k1"]);
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

  // SQLite keeps the times to itself; its sweep is tested below.
  it.skipIf(kind === "sqlite")("expires every entry within a day after the retention", async () => {
    await use({ retentionDays }, async (store) => {
      await expireConversation(store);
      await store.conversations.append("web:1", messageOf("m2", "later"));
      const remaining = await remainingTimes(current().url);
      expect(remaining.length).toBeGreaterThan(3);
      for (const [key, ms] of remaining) expect(ms, key).toBeLessThan(dayMs + 2000);
    });
  });

  // Servers go by clocks of their own.
  it.skipIf(kind !== "sqlite")(
    "removes expired conversations from the disk, blobs and indexes included",
    async () => {
      await use({ retentionDays }, async (store) => {
        const hash = await expireConversation(store);
        await store.sweep(Date.now() + 2 * dayMs);
        expect(await store.conversations.getBlob("web:1", hash)).toBeUndefined();
        expect(await store.conversations.list("web:", { max: 9 })).toEqual([]);
        expect(await store.conversations.listWithin("web:place")).toEqual([]);
        expect(holds(await current().bytes(), secret)).toBe(false);
        expect(await readdir(join(current().folder, "blobs"))).toEqual([]);
      });
    },
  );
});

/** Remaining time to live of each entry, in ms. What has no expiry holds no text of people. */
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
