import { randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createClient } from "redis";
import { openStore, type Store, type StoreOptions } from "../../src/conversations/open-store.ts";
import { has } from "../support/requirements.ts";
import { type RedisServer, startRedis } from "../support/redis-server.ts";
import { bytesOfFolder, bytesOfRedis, holds } from "../support/store-bytes.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";

const newKey = () => randomBytes(32).toString("base64");
const dayMs = 24 * 60 * 60 * 1000;

interface Place {
  readonly url: string;
  /** Every byte the store has on disk, file names included. */
  bytesOnDisk(): Promise<Buffer>;
}

let folder: string;
let server: RedisServer;
let database = 0;
beforeAll(async () => {
  if (has("redis")) server = await startRedis();
});
afterAll(async () => {
  if (has("redis")) await server.remove();
});
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-rest-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

const sqlitePlace = (): Place => ({
  url: `sqlite:${join(folder, "parley.db")}`,
  bytesOnDisk: () => bytesOfFolder(folder),
});
const redisPlace = (): Place => {
  database = (database + 1) % 16;
  const url = `${server.url}/${database}`;
  return { url, bytesOnDisk: () => bytesOfRedis(url) };
};

describe.each([
  ["sqlite", sqlitePlace, false],
  ["redis", redisPlace, !has("redis")],
] as const)("%s at rest", (_, placeOf, isLeftOut) => {
  describe.skipIf(isLeftOut)("(there)", () => {
    let place: Place;
    beforeEach(() => {
      place = placeOf();
    });
    const use = async <T>(options: Partial<StoreOptions>, work: (store: Store) => Promise<T>): Promise<T> => {
      const store = await openStore(place.url, { log: silentLog, ...options });
      try {
        return await work(store);
      } finally {
        await store.close();
      }
    };
    const secret = `secret-${randomUUID()}`;
    const fill = async (store: Store) => {
      await store.conversations.append("web:1", messageOf("m1", secret));
      await store.conversations.saveSettings("web:1", { title: secret });
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

    it("shows what people wrote when there is no key, so that the next tests mean something", async () => {
      await use({}, async (store) => {
        await fill(store);
        expect(await place.bytesOnDisk()).toSatisfy((bytes: Buffer) => bytes.includes(secret));
      });
    });

    it("shows nothing people wrote or sent when there is a key, and reads it all back", async () => {
      const encryptionKeys = [newKey()];
      const { hash } = await use({ encryptionKeys }, async (store) => {
        const ref = await fill(store);
        expect(store.describe()).toContain("encrypted");
        expect(holds(await place.bytesOnDisk(), secret)).toBe(false);
        return ref;
      });
      await use({ encryptionKeys }, (store) => check(store, hash));
    });

    it("is refused at the start without its key or with another", async () => {
      await use({ encryptionKeys: [newKey()] }, fill);
      for (const encryptionKeys of [[], [newKey()]]) {
        await expect(openStore(place.url, { log: silentLog, encryptionKeys })).rejects.toMatchObject({
          code: "config",
          message: expect.stringContaining("STORE_ENCRYPTION_KEYS"),
        });
      }
    });

    it("changes keys, and from none to one, while it is in use; afterwards the old key is not needed", async () => {
      const [one, two] = [newKey(), newKey()];
      const { hash } = await use({}, fill);
      await use({ encryptionKeys: [one] }, async (store) => {
        await check(store, hash);
        expect(await store.reencrypt()).toBeGreaterThan(4);
        expect(await store.reencrypt()).toBe(0);
      });
      expect(holds(await place.bytesOnDisk(), secret)).toBe(false);
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

    it("forgets a conversation after its time, blobs and list entry included, also on disk", async () => {
      const retentionDays = 0.5 / (dayMs / 1000);
      await use({ retentionDays }, async (store) => {
        const { hash } = await fill(store);
        await store.inbox.close(["k1"]);
        await vi.waitUntil(
          async () => (await store.conversations.recent("web:1", { maxMessages: 9 })).length === 0,
          {
            timeout: 5000,
            interval: 20,
          },
        );
        expect(await store.conversations.find("web:1", "m1")).toBeUndefined();
        // Where it ended is known for a day more, so that numbering goes on.
        expect(await store.conversations.append("web:1", messageOf("m2", "later"))).toBe("appended");
        const lives = await remainingLives(place.url);
        for (const [key, ms] of lives) expect(ms, key).toBeLessThan(dayMs + 2000);
        if (place.url.startsWith("sqlite:")) {
          await store.sweep(Date.now() + 2 * dayMs);
          expect(await store.conversations.getBlob("web:1", hash)).toBeUndefined();
          expect(await store.conversations.list("web:", { max: 9 })).toEqual([]);
          expect(holds(await place.bytesOnDisk(), secret)).toBe(false);
          expect(await readdir(join(folder, "blobs"))).toEqual([]);
        }
      });
    });
  });
});

/** How long each entry of Redis has left, in ms; entries that live for ever are only those that hold no words. */
async function remainingLives(url: string): Promise<[string, number][]> {
  if (!url.startsWith("redis:")) return [];
  const client = await createClient({ url }).connect();
  const keys = (await client.keys("*")).filter((key) => !/^parley:(schema|ranking|lease|meta)/.test(key));
  const lives = await Promise.all(
    keys.map(async (key): Promise<[string, number]> => {
      const ms = await client.pTTL(key);
      return [key, ms === -1 ? Number.POSITIVE_INFINITY : ms];
    }),
  );
  await client.close();
  return lives;
}
