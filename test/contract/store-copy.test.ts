import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { backendOf } from "../../src/conversations/backends.ts";
import { inOrder } from "../../src/conversations/conversation-index.ts";
import { copyStore } from "../../src/conversations/copy-store.ts";
import { createEncryption } from "../../src/conversations/encryption.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { createMemoryLog } from "../support/memory-log.ts";
import { openRawStore, type RawStore } from "../support/raw-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { bytesOfFolder, holds } from "../support/store-bytes.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores, type TestStore } from "../support/stores.ts";
import { answerTurn } from "../support/turn-steps.ts";

const [oldKey, newKey] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
const secret = "what nobody else may read";
const erased = "what was taken back";
const hourMs = 60 * 60 * 1000;
const noon = Date.parse("2026-11-20T12:00:00Z");
const ann = { kind: "person", id: "test:ann" } as const;

async function use<T>(
  store: TestStore,
  encryptionKeys: readonly string[],
  work: (store: Store) => Promise<T>,
): Promise<T> {
  const opened = await store.open({ encryptionKeys });
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

/** Fills a store with something of each kind. Resolves to the hash of a picture. */
async function fill(store: Store): Promise<string> {
  const { conversations, inbox, spending } = store;
  for (let n = 0; n < 60; n++) await conversations.append("web:1", messageOf(`m${n}`, `${secret} ${n}`));
  await conversations.append("web:2", messageOf("m1", erased));
  await conversations.saveSettings("web:1", { title: secret, within: ["web:place"], isPinned: true });
  const { hash } = await conversations.putBlob("web:1", Buffer.from(secret), "text/plain");
  await inbox.accept({ ...eventOf("open"), text: secret });
  await answerTurn(inbox, [eventOf("answered")]);
  await store.records.set("for an hour", secret, hourMs);
  await store.settings.change("web:place", { language: "de" });
  const reserved = await spending.reserve(0.25, { budgets: [], now: noon });
  if (!("reservedAt" in reserved)) throw new Error("not reserved");
  const labels = { personId: "test:ann", model: "m", operation: "chat" } as const;
  const amounts = { inputTokens: 1, outputTokens: 1, images: 0, seconds: 0 };
  await spending.settle(
    reserved,
    { labels, usage: { ...amounts, costUsd: 0.25, isEstimated: false }, scopes: [ann] },
    noon,
  );
  await store.erasure.deleteConversation("web:2");
  return hash;
}

async function check(store: Store, hash: string): Promise<void> {
  const { conversations, inbox, spending } = store;
  const messages = await conversations.recent("web:1", { maxMessages: 200 });
  expect(messages).toHaveLength(60);
  expect(messages[7]?.parts).toEqual([{ kind: "text", text: `${secret} 7` }]);
  expect(await conversations.existing(["web:2"])).toEqual([]);
  expect(await conversations.settings("web:1")).toMatchObject({ title: secret, isPinned: true });
  const blob = await conversations.getBlob("web:1", hash);
  expect(Buffer.from(blob?.bytes ?? []).toString()).toBe(secret);
  expect((await inbox.open()).map(({ event }) => event.key)).toEqual(["open"]);
  expect(await inbox.accept(eventOf("answered"))).toBe("duplicate");
  expect(await store.records.get("for an hour")).toBe(secret);
  expect(await store.settings.read(["web:place"])).toEqual([{ language: "de" }]);
  expect((await spending.spent(ann, noon)).spentUsd).toBe(0.25);
}

async function withRaw<T>({ url }: TestStore, work: (raw: RawStore) => Promise<T>): Promise<T> {
  const raw = await openRawStore(url);
  try {
    return await work(raw);
  } finally {
    await raw.close();
  }
}

/** A copy may be a moment late with the expiry of an entry. */
const lateMs = 60_000;

/** Every member of every index with its score, and when each entry expires. */
async function outlineOf({ url }: TestStore) {
  const { backend } = await backendOf(url).open(url, { log: silentLog, exclusive: false });
  const members: string[] = [];
  for await (const { key: name } of backend.scan("indexes"))
    for await (const { member, score } of inOrder(backend, name, "lowest-first"))
      members.push(JSON.stringify([name, member, score]));
  const expiries: [entry: string, at: number | undefined][] = [];
  for (const space of ["slot", "inbox", "record", "turn", "blob"] as const)
    for await (const { key, expires: at } of backend.scan(space)) expiries.push([`${space} ${key}`, at]);
  await backend.close();
  return { members: members.toSorted(), expiries: new Map(expiries) };
}

/** Copies in a process of its own, which is killed at a line unless that is 0. */
async function copyInChild(from: string, to: string, keys: readonly string[], line: number): Promise<void> {
  const child = spawn(process.execPath, [childScript, from, to, keys.join(","), String(line)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  expect({ code, signal }).toEqual(
    line === 0 ? { code: 0, signal: null } : { code: null, signal: "SIGKILL" },
  );
}

const childScript = fileURLToPath(new URL("copy-child.ts", import.meta.url));
const refused = (part: string) =>
  expect.objectContaining({ code: "config", message: expect.stringContaining(part) });

// Attack: A forged value in a copy; interrupted copies; wrong or missing key.
describeStores("a copy from it", (source, fromKind) =>
  describeStores(`a copy from ${fromKind} into it`, (target) => {
    it("is the same store, also when it is killed twice and run again", async () => {
      const hash = await use(source(), [], fill);
      const before = await outlineOf(source());
      for (const line of [2, 7]) {
        await copyInChild(source().url, target().url, [], line);
        await expect(target().open()).rejects.toEqual(refused("was not completed: run parley copy again"));
      }
      const half = await withRaw(target(), (raw) => raw.all());
      expect(half.length).toBeGreaterThan(60);
      await copyInChild(source().url, target().url, [], 0);
      const whole = await withRaw(target(), (raw) => raw.all());
      for (const one of half.filter(([space]) => space !== "meta")) expect(whole).toContainEqual(one);
      const after = await outlineOf(target());
      expect(after.members).toEqual(before.members);
      expect([...after.expiries.keys()].toSorted()).toEqual([...before.expiries.keys()].toSorted());
      for (const [entry, at] of before.expiries) {
        if (at === undefined) expect(after.expiries.get(entry), entry).toBeUndefined();
        else expect(Math.abs((after.expiries.get(entry) ?? 0) - at), entry).toBeLessThan(lateMs);
      }
      expect(holds(await target().bytes(), erased)).toBe(false);
      await use(target(), [], (store) => check(store, hash));
      await use(source(), [], (store) => check(store, hash));
    });

    it("is encrypted, with no readable byte", async () => {
      const hash = await use(source(), [], fill);
      await expect(source().open({ encryptionKeys: [oldKey] })).rejects.toEqual(refused("parley copy"));
      const [from, to] = [source().url, target().url];
      await copyInChild(from, to, [oldKey], 0);
      for (const words of [secret, erased]) expect(holds(await target().bytes(), words)).toBe(false);
      await use(target(), [oldKey], (store) => check(store, hash));
    });

    it("takes another key, and the old one is not needed afterwards", async () => {
      const hash = await use(source(), [oldKey], fill);
      const copy = (encryptionKeys: readonly string[]) =>
        copyStore({ from: source().url, to: target().url, encryptionKeys, log: silentLog });
      for (const keys of [[], [newKey]])
        await expect(copy(keys)).rejects.toEqual(refused("STORE_ENCRYPTION_KEYS"));
      await copy([newKey, oldKey]);
      await use(target(), [newKey], (store) => check(store, hash));
    });
  }),
);

describeStores("a copy", (current, kind) => {
  const emptyUrl = () => `sqlite:${join(current().folder, "copy", "parley.db")}`;
  const copy = (from: string, to: string, encryptionKeys: readonly string[] = [], log = silentLog) =>
    copyStore({ from, to, encryptionKeys, log });

  it("does not go into a store that holds anything, and leaves that as it is", async () => {
    await use(current(), [], (store) => store.records.set("mine", 1));
    const other = `sqlite:${join(current().folder, "other", "parley.db")}`;
    await copy(current().url, other);
    await expect(copy(other, current().url)).rejects.toEqual(refused("is not empty"));
    await expect(copy(current().url, other)).rejects.toEqual(refused("is not empty"));
    await expect(copy(emptyUrl(), current().url)).rejects.toEqual(refused("does not exist yet"));
    expect(await use(current(), [], (store) => store.records.get("mine"))).toBe(1);
  });

  it("has no forged value, and names what it leaves out", async () => {
    await use(current(), [oldKey], (store) => store.records.set("mine", 1));
    await withRaw(current(), (raw) => raw.set("record", "forged", '{"value":2}'));
    const lines: string[] = [];
    const counts = await copy(current().url, emptyUrl(), [newKey, oldKey], createMemoryLog(lines));
    expect(counts).toMatchObject({ entries: 2, leftOut: 1 });
    expect(lines.join("\n")).toContain("damaged entry left out");
    const target = backendOf(emptyUrl());
    const { backend } = await target.open(emptyUrl(), { log: silentLog });
    const asked = ["mine", "forged"].map((key) => ({ space: "record", key }) as const);
    expect(await backend.read(asked, "presence")).toEqual(["", undefined]);
    await backend.close();
  });

  it("takes all of a store of version 4 in which encryption was turned on later", async () => {
    const hash = await use(current(), [], fill);
    const { entries } = createEncryption([oldKey]);
    const seal = (space: "meta" | "record", key: string, value: string) =>
      withRaw(current(), (raw) =>
        raw.set(space, key, entries.seal({ space, key }, JSON.stringify({ value }))),
      );
    await seal("meta", "sealing", "migrating");
    await seal("record", "later", secret);
    await expect(current().open({ encryptionKeys: [oldKey] })).rejects.toEqual(refused("parley copy"));
    expect(await copy(current().url, emptyUrl(), [oldKey])).toMatchObject({ leftOut: 0 });
    const store = await openStore(emptyUrl(), { log: silentLog, encryptionKeys: [oldKey] });
    await check(store, hash);
    expect(await store.records.get("later")).toBe(secret);
    await store.close();
    expect(holds(await bytesOfFolder(join(current().folder, "copy")), secret)).toBe(false);
  });

  it.runIf(kind === "sqlite")("waits for the bot to stop, and keeps files of two stores apart", async () => {
    const running = await current().open();
    await expect(copy(current().url, emptyUrl())).rejects.toMatchObject({
      message: expect.stringContaining("in use by another Parley"),
    });
    await running.close();
    const beside = `sqlite:${join(current().folder, "other.db")}`;
    await expect(copy(current().url, beside)).rejects.toEqual(refused("one folder"));
  });

  it.runIf(kind === "sqlite")("names a picture whose file is gone", async () => {
    await use(current(), [], fill);
    const blobs = join(current().folder, "blobs");
    for (const name of await readdir(blobs, { recursive: true }))
      if (name.includes("/")) await unlink(join(blobs, name));
    expect(await copy(current().url, emptyUrl())).toMatchObject({ leftOut: 1 });
  });
});
