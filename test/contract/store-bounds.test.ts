import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { folderOf } from "../../src/conversations/store-keys.ts";
import { openRawStore } from "../support/raw-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const refused = expect.objectContaining({ code: "internal" });
const dayMs = 24 * 60 * 60 * 1000;

describeStores("ids that a stranger chooses", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog, retentionDays: 1 });
  });
  afterEach(async () => {
    vi.useRealTimers();
    await store.close();
  });

  it.each(["\ud800", "a\udfff", "x".repeat(20_000)])(
    "are refused when no store can hold them (%#)",
    async (id) => {
      const author = { id, name: "Eve" };
      const { conversations, inbox, records } = store;
      for (const attempt of [
        () => conversations.append(id, messageOf("m")),
        () => conversations.append("web:1", messageOf(id)),
        () => conversations.append("web:1", { ...messageOf("m"), author }),
        () => conversations.recent(id, { maxMessages: 1 }),
        () => conversations.exists(id),
        () => conversations.find("web:1", id),
        () => conversations.saveSettings(id, {}),
        () => conversations.saveSettings("web:1", { within: [id] }),
        () => inbox.accept(eventOf(id)),
        () => inbox.accept({ ...eventOf("k"), conversationId: id }),
        () => records.set(id, 1),
        () => records.get(id),
      ])
        await expect(attempt()).rejects.toEqual(refused);
      // Nothing was written halfway.
      expect(await conversations.exists("web:1")).toBe(false);
      expect(await inbox.listOpen()).toEqual([]);
    },
  );

  it("are refused when empty, where an empty one could not be read again", async () => {
    await expect(store.records.set("", 1)).rejects.toEqual(refused);
    await expect(store.inbox.accept(eventOf(""))).rejects.toEqual(refused);
  });

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "a\0b",
    "\0",
    "\n",
    "\ufffd",
    "../x",
    "*",
    "[a-z]*",
    "::",
  ])("are kept apart and as they are: %j", async (id) => {
    const { conversations, inbox, records, erasure } = store;
    const message = { ...messageOf(id), author: { id, name: id } };
    expect(await conversations.append(id, message)).toBe("appended");
    expect(await conversations.append(`${id}2`, messageOf("other"))).toBe("appended");
    expect(await conversations.find(id, id)).toEqual(message);
    await conversations.saveSettings(id, { title: id, within: [id] });
    expect(await conversations.listWithin(id)).toEqual([id]);
    expect(await conversations.list(id, { max: 9 })).toContainEqual(expect.objectContaining({ title: id }));
    expect(await inbox.accept({ ...eventOf(id, id), author: message.author })).toBe("accepted");
    expect(await inbox.accept(eventOf(id, id))).toBe("duplicate");
    expect((await inbox.listOpenIn(id)).map(({ event }) => event.key)).toEqual([id]);
    await inbox.close([id]);
    await records.set(id, { [id]: 1 });
    expect(JSON.stringify(await records.get(id))).toBe(JSON.stringify(Object.fromEntries([[id, 1]])));
    expect(await erasure.forgetAuthor(undefined, id)).toMatchObject({ messages: 1, conversations: 1 });
    expect(await conversations.exists(`${id}2`)).toBe(true);
  });

  it("cannot change prototypes as names of stored fields", async () => {
    const value = JSON.parse(
      '{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}',
    ) as object;
    await store.records.set("r", value as never);
    expect(JSON.stringify(await store.records.get("r"))).toBe(JSON.stringify(value));
    await store.conversations.saveSettings("web:1", value);
    await store.conversations.saveSettings("web:1", { title: "t" });
    expect(await store.conversations.settings("web:1")).toMatchObject({ title: "t" });
    expect({}).not.toHaveProperty("polluted");
  });

  it("cannot choose the name of an exported file by a media type", async () => {
    const blob = { ...(await store.conversations.putBlob("web:1", Buffer.from("x"), "image/constructor")) };
    await store.conversations.append("web:1", {
      ...messageOf("m"),
      parts: [{ kind: "image", blob, name: "constructor" }],
    });
    const names = (await store.exportConversation("web:1")).files.map(({ name }) => name);
    expect(names).toEqual([
      "conversation.md",
      "conversation.json",
      expect.stringMatching(/^image-\w{12}\.bin$/),
    ]);
  });

  it("do not let the list of a conversation's blobs grow past the retention", async () => {
    vi.useFakeTimers({ toFake: ["Date", "performance"] });
    const raw = await openRawStore(current().url);
    for (let day = 0; day < 12; day++) {
      const { hash } = await store.conversations.putBlob("web:1", Buffer.from(`picture ${day}`), "image/png");
      // Redis has a clock of its own: as if it had expired.
      if (day < 9) await raw.delete("blob", `${folderOf("web:1")}/${hash}`);
      vi.advanceTimersByTime(dayMs);
    }
    const listed = await raw.countMembers(`blobs:${folderOf("web:1")}`);
    await raw.close();
    expect(listed).toBeLessThan(4);
  });

  it("keep blobs listed that have no expiry, so that they are deleted with their conversation", async () => {
    await store.close();
    store = await openStore(current().url, { log: silentLog });
    const kept = await store.conversations.putBlob("web:1", Buffer.from("a kept picture"), "image/png");
    await store.close();
    store = await openStore(current().url, { log: silentLog, retentionDays: 1 });
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

describeStores("a damaged entry", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
    for (const n of [1, 2]) {
      await store.conversations.append("web:1", messageOf(`m${n}`));
      await store.inbox.accept(eventOf(`k${n}`, "web:1"));
    }
  });
  afterEach(async () => {
    await store.close();
  });
  const damage = async (space: string, key: string, value: string) => {
    const raw = await openRawStore(current().url);
    await raw.set(space, key, value);
    await raw.close();
  };

  describe.each(["not JSON", "null", "{}", '{"value":null}', '{"value":{"event":5}}'])("%s", (value) => {
    it("of the inbox does not keep the other events from being answered, and can be withdrawn", async () => {
      await damage("inbox", "k1", value);
      // The process that accepted them knows them without reading.
      await store.close();
      store = await openStore(current().url, { log: silentLog });
      expect((await store.inbox.listOpen()).map(({ event }) => event.key)).toEqual(["k2"]);
      expect((await store.inbox.listOpenIn("web:1")).map(({ event }) => event.key)).toEqual(["k2"]);
      await expect(store.inbox.isOpen("k1")).rejects.toMatchObject({ code: "store-corrupt" });
      await store.inbox.withdraw(["k1"]);
      expect(await store.inbox.accept(eventOf("k1", "web:1"))).toBe("duplicate");
    });

    it("of a conversation is an error of what reads it, never an absent message; it can be deleted", async () => {
      await damage("slot", "web:1/0000000000", value);
      const corrupt = { code: "store-corrupt" };
      const { conversations, erasure } = store;
      await expect(conversations.recent("web:1", { maxMessages: 9 })).rejects.toMatchObject(corrupt);
      await expect(conversations.find("web:1", "m1")).rejects.toMatchObject(corrupt);
      await expect(store.exportConversation("web:1")).rejects.toMatchObject(corrupt);
      await expect(erasure.forgetAuthor("web:1", "test:ann")).rejects.toMatchObject(corrupt);
      expect(await conversations.list("web:", { max: 9 })).toHaveLength(1);
      expect(await conversations.append("web:1", messageOf("m3"))).toBe("appended");
      await erasure.deleteConversation("web:1");
      expect(await conversations.exists("web:1")).toBe(false);
      expect(await conversations.recent("web:1", { maxMessages: 9 })).toEqual([]);
    });
  });
});
