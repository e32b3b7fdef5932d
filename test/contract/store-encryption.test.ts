import { createHash, randomBytes, randomUUID } from "node:crypto";
import { rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Store, StoreOptions } from "../../src/conversations/open-store.ts";
import { openRawStore, type RawStore } from "../support/raw-store.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";
import { entryAt, folderOf } from "../../src/conversations/keys.ts";

const newKey = () => randomBytes(32).toString("base64");

describeStores("encryption at rest", (current) => {
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
    await store.inbox.accept({ ...eventOf("k1"), text: secret });
    return store.conversations.putBlob("web:1", Buffer.from(secret), "text/plain");
  };
  const check = async (store: Store, hash: string) => {
    const [message] = await store.conversations.recent("web:1", { maxMessages: 1 });
    expect(message?.parts).toEqual([{ kind: "text", text: secret }]);
    expect((await store.conversations.settings("web:1")).title).toBe(secret);
    expect((await store.inbox.open())[0]?.event).toMatchObject({ text: secret });
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
      await expect(current().open({ encryptionKeys })).rejects.toMatchObject({
        code: "config",
        message: expect.stringContaining("STORE_ENCRYPTION_KEYS"),
      });
    }
  });

  it("writes with the newest key and reads with each", async () => {
    const [one, two] = [newKey(), newKey()];
    const { hash } = await use({ encryptionKeys: [one] }, fill);
    await use({ encryptionKeys: [two, one] }, async (store) => {
      await check(store, hash);
      await store.records.set("later", 1);
    });
    await expect(current().open({ encryptionKeys: [two] })).rejects.toMatchObject({ code: "config" });
    await use({ encryptionKeys: [one, two] }, async (store) => {
      await check(store, hash);
      expect(await store.records.get("later")).toBe(1);
    });
  });

  // Attack: Swapped, copied, plain values; swapped files.
  // Attack: Removed or forged mark.
  it("refuses to start on a store that was filled without a key, and says what to do", async () => {
    await use({}, fill);
    const before = await current().bytes();
    await expect(current().open({ encryptionKeys: [newKey()] })).rejects.toMatchObject({
      code: "config",
      message: expect.stringMatching(/not encrypted.*run parley copy <this store> <an empty store>/),
    });
    expect(holds(await current().bytes(), "sealing")).toBe(holds(before, "sealing"));
    await use({}, async (store) => expect(await store.conversations.existing(["web:1"])).toEqual(["web:1"]));
  });
});

const key = randomBytes(32).toString("base64");
const corrupt = expect.objectContaining({ code: "store-corrupt" });
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
const [a, b] = ["web:a", "web:b"];

describeStores("somebody without a key who writes to the store", (current, kind) => {
  const use = async <T>(keys: readonly string[], work: (store: Store) => Promise<T>) => {
    const store = await current().open({ encryptionKeys: keys });
    try {
      return await work(store);
    } finally {
      await store.close();
    }
  };
  const tamper = async <T>(work: (raw: RawStore) => Promise<T>) => {
    const raw = await openRawStore(current().url);
    try {
      return await work(raw);
    } finally {
      await raw.close();
    }
  };
  const fill = async (store: Store) => {
    for (const id of [a, b]) {
      await store.conversations.append(id, messageOf("m1", `words in ${id}`));
      await store.conversations.saveSettings(id, { title: `title of ${id}` });
      await store.conversations.putBlob(id, Buffer.from(`picture 1 in ${id}`), "image/png");
      await store.conversations.putBlob(id, Buffer.from(`picture 2 in ${id}`), "image/png");
      await store.inbox.accept(eventOf(`event in ${id}`, id));
    }
  };
  const check = async (store: Store) => {
    for (const id of [a, b]) {
      const [message] = await store.conversations.recent(id, { maxMessages: 1 });
      expect(message?.parts).toEqual([{ kind: "text", text: `words in ${id}` }]);
      const picture = await store.conversations.getBlob(id, hashOf(`picture 1 in ${id}`));
      expect(Buffer.from(picture?.bytes ?? []).toString()).toBe(`picture 1 in ${id}`);
    }
    expect(await store.inbox.open()).toHaveLength(2);
  };
  const blobFile = (id: string, hash: string) => join(current().folder, "blobs", folderOf(id), hash);
  const swap = async (
    raw: RawStore,
    [space, one]: [string, string],
    [otherSpace, other]: [string, string],
  ) => {
    const [first, second] = [await raw.get(space, one), await raw.get(otherSpace, other)];
    await raw.set(space, one, second);
    await raw.set(otherSpace, other, first);
  };

  it("cannot swap messages or settings of two conversations", async () => {
    await use([key], fill);
    await tamper(async (raw) => {
      await swap(raw, ["slot", entryAt.slot(a, 0).key], ["slot", entryAt.slot(b, 0).key]);
      await swap(raw, ["settings", a], ["settings", b]);
    });
    await use([key], async (store) => {
      for (const id of [a, b]) {
        await expect(store.conversations.recent(id, { maxMessages: 9 })).rejects.toEqual(corrupt);
        await expect(store.conversations.settings(id)).rejects.toEqual(corrupt);
      }
    });
  });

  it("cannot move a value into another space", async () => {
    await use([key], async (store) => {
      await fill(store);
      await store.records.set(a, { limit: 1 });
    });
    await tamper(async (raw) => raw.set("settings", a, await raw.get("record", a)));
    await use([key], (store) => expect(store.conversations.settings(a)).rejects.toEqual(corrupt));
  });

  it("cannot swap pictures, within a conversation or between two", async () => {
    await use([key], fill);
    const [one, two] = [hashOf(`picture 1 in ${a}`), hashOf(`picture 2 in ${a}`)];
    const elsewhere = hashOf(`picture 1 in ${b}`);
    if (kind === "sqlite") {
      await rename(`${blobFile(a, one)}.enc`, `${blobFile(a, two)}.enc`);
      await rename(`${blobFile(b, elsewhere)}.enc`, `${blobFile(a, one)}.enc`);
    } else {
      await tamper(async (raw) => {
        await raw.set("blob", entryAt.blob(a, two).key, await raw.get("blob", entryAt.blob(a, one).key));
        await raw.set(
          "blob",
          entryAt.blob(a, one).key,
          await raw.get("blob", entryAt.blob(b, elsewhere).key),
        );
      });
    }
    await use([key], async (store) => {
      for (const hash of [one, two])
        await expect(store.conversations.getBlob(a, hash)).rejects.toEqual(corrupt);
    });
  });

  it("cannot add plain entries, from the first start on", async () => {
    await use([key], fill);
    const forged = JSON.stringify({ value: { title: "forged", model: "attacker/model" } });
    await tamper((raw) => raw.set("settings", a, forged));
    await use([key], (store) => expect(store.conversations.settings(a)).rejects.toEqual(corrupt));
  });

  it.runIf(kind === "sqlite")("cannot put plain pictures in the place of sealed ones", async () => {
    await use([key], fill);
    const hash = hashOf(`picture 1 in ${a}`);
    await unlink(`${blobFile(a, hash)}.enc`);
    await writeFile(blobFile(a, hash), `picture 1 in ${a}`);
    await use([key], (store) => expect(store.conversations.getBlob(a, hash)).rejects.toEqual(corrupt));
    await writeFile(`${blobFile(a, hash)}.enc`, `picture 1 in ${a}`);
    await use([key], (store) => expect(store.conversations.getBlob(a, hash)).rejects.toEqual(corrupt));
  });

  it("cannot make the store accept plain entries again by removing or forging its mark", async () => {
    await use([key], fill);
    const whole = await tamper((raw) => raw.get("meta", "sealing"));
    const elsewhere = await tamper((raw) => raw.get("settings", a));
    await tamper((raw) => raw.delete("meta", "sealing"));
    await expect(use([key], check)).rejects.toMatchObject({ code: "config" });
    for (const forged of ['{"value":"migrating"}', elsewhere]) {
      await tamper((raw) => raw.set("meta", "sealing", forged));
      await expect(use([key], check)).rejects.toEqual(corrupt);
    }
    await tamper((raw) => raw.set("meta", "sealing", whole));
    await use([key], check);
  });

  it.runIf(kind !== "sqlite")("several first starts at once agree", async () => {
    await Promise.all(Array.from({ length: 5 }, () => use([key], (store) => store.ping())));
    await use([key], fill);
    await use([key], check);
  });
});
