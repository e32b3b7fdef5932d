import { createHash, randomBytes, randomUUID } from "node:crypto";
import { rename, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Store, StoreOptions } from "../../src/conversations/open-store.ts";
import { createEncryption } from "../../src/conversations/encryption.ts";
import { entryAt, folderOf } from "../../src/conversations/key-value.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { openRawStore, type RawStore } from "../support/raw-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

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
      await expect(current().open({ encryptionKeys })).rejects.toMatchObject({
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
});

const key = randomBytes(32).toString("base64");
const corrupt = expect.objectContaining({ code: "store-corrupt" });
const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
const [a, b] = ["web:a", "web:b"];

describeStores("somebody without a key who writes to the store", (current, kind) => {
  const use = async <T>(keys: readonly string[], work: (store: Store) => Promise<T>, log = silentLog) => {
    const store = await current().open({ log, encryptionKeys: keys });
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
    expect(await store.inbox.listOpen()).toHaveLength(2);
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
    await expect(use([key], check)).rejects.toEqual(corrupt);
    for (const forged of ['{"value":"migrating"}', elsewhere]) {
      await tamper((raw) => raw.set("meta", "sealing", forged));
      await expect(use([key], check)).rejects.toEqual(corrupt);
    }
    await tamper((raw) => raw.set("meta", "sealing", whole));
    await use([key], check);
  });

  it("cannot use reencrypt to have plain entries encrypted", async () => {
    await use([key], fill);
    await tamper((raw) => raw.set("settings", a, '{"value":{"title":"forged"}}'));
    const lines: string[] = [];
    await use([key], (store) => store.reencrypt(), createMemoryLog(lines));
    expect(lines.join("\n")).toContain("damaged entry left as it is");
    await use([key], async (store) => {
      await expect(store.conversations.settings(a)).rejects.toEqual(corrupt);
      await check(store);
    });
  });

  it.runIf(kind !== "sqlite")("several first starts at once agree", async () => {
    await Promise.all(Array.from({ length: 5 }, () => use([key], (store) => store.ping())));
    await use([key], fill);
    await use([key], check);
  });
});

const other = randomBytes(32).toString("base64");
const warning = "run npm run reencrypt";

describeStores("a store with values from before encryption was turned on", (current) => {
  const open = async (keys: readonly string[], lines: string[] = []) =>
    current().open({ log: createMemoryLog(lines), encryptionKeys: keys });
  const withStore = async <T>(keys: readonly string[], work: (store: Store) => Promise<T>) => {
    const lines: string[] = [];
    const store = await open(keys, lines);
    try {
      return { result: await work(store), warned: lines.some((line) => line.includes(warning)) };
    } finally {
      await store.close();
    }
  };
  const fill = async (store: Store) => {
    for (let n = 0; n < 5; n++) await store.conversations.append(a, messageOf(`m${n}`));
    await store.records.set("key 1", { budget: 3 });
    return (await store.conversations.putBlob(a, Buffer.from("a picture"), "image/png")).hash;
  };
  const check = async (store: Store) => {
    expect(await store.conversations.recent(a, { maxMessages: 9 })).toHaveLength(5);
    expect(await store.records.get("key 1")).toEqual({ budget: 3 });
    const picture = await store.conversations.getBlob(a, hashOf("a picture"));
    expect(Buffer.from(picture?.bytes ?? []).toString()).toBe("a picture");
  };
  const formsOf = async () => {
    const raw = await openRawStore(current().url);
    const forms = (await raw.all()).map(([, , value]) => value.slice(0, 5));
    await raw.close();
    return [...new Set(forms)];
  };
  it("is read with a warning until reencrypt", async () => {
    await withStore([], fill);
    expect((await withStore([key], check)).warned).toBe(true);
    expect((await withStore([key], (store) => store.reencrypt())).result).toBeGreaterThan(5);
    const after = await withStore([key], async (store) => {
      await check(store);
      return store.reencrypt();
    });
    expect(after).toEqual({ result: 0, warned: false });
    expect(await formsOf()).toEqual(["enc2:"]);
  });

  it("refuses plain values in the process that ran reencrypt", async () => {
    await withStore([], fill);
    await withStore([key], async (store) => {
      await store.reencrypt();
      const raw = await openRawStore(current().url);
      await raw.set("settings", a, '{"value":{}}');
      await raw.close();
      await expect(store.conversations.settings(a)).rejects.toEqual(corrupt);
    });
  });

  it("is not marked by an interrupted reencrypt, which a second run completes", async () => {
    await withStore([], fill);
    await withStore([key], check);
    const raw = await openRawStore(current().url);
    const at = { space: "record", key: "key 1" } as const;
    // It is in the last spaces, so everything before it is rewritten when the missing key stops the work.
    const { entries } = createEncryption([other]);
    await raw.set(at.space, at.key, entries.seal(at, '{"value":{"budget":3}}'));
    await raw.close();
    await withStore([key], (store) => expect(store.reencrypt()).rejects.toMatchObject({ code: "config" }));
    expect((await formsOf()).toSorted()).toEqual(expect.arrayContaining(["enc2:"]));
    expect((await withStore([key, other], check)).warned).toBe(true);
    expect((await withStore([key, other], (store) => store.reencrypt())).result).toBeGreaterThan(0);
    expect((await withStore([key], check)).warned).toBe(false);
    expect(await formsOf()).toEqual(["enc2:"]);
  });

  it("does not start with another key, nor when the old one is removed before reencrypt", async () => {
    await withStore([], fill);
    await withStore([key], (store) => store.reencrypt());
    await withStore([other, key], check);
    await expect(open([other])).rejects.toMatchObject({ code: "config" });
    await withStore([other, key], (store) => store.reencrypt());
    await withStore([other], check);
  });
});
