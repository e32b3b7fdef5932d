import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { writeOldStore } from "../support/old-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { eventOf, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

const keysIn = async (store: Store, conversationId: string) =>
  (await store.inbox.listOpenIn(conversationId)).map(({ event }) => event.key);

describeStores("indexes", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });

  describe("of the inbox by conversation", () => {
    it("lists a conversation's open events, oldest first, with their turns", async () => {
      for (const key of ["k1", "k2", "k3"]) await store.inbox.accept(eventOf(key, "test:1"));
      await store.inbox.accept(eventOf("other", "test:11"));
      const turn = { keys: ["k1", "k2"], address: { message: "7" }, attempts: 1 };
      await store.inbox.saveTurn(turn);
      expect(await keysIn(store, "test:1")).toEqual(["k1", "k2", "k3"]);
      expect((await store.inbox.listOpenIn("test:1"))[0]?.turn).toEqual(turn);
      expect(await keysIn(store, "test:11")).toEqual(["other"]);
      expect(await keysIn(store, "test:111")).toEqual([]);
    });

    it("follows closed, reopened and withdrawn events", async () => {
      for (const key of ["k1", "k2", "k3"]) await store.inbox.accept(eventOf(key, "test:1"));
      await store.inbox.close(["k1", "k2"]);
      expect(await keysIn(store, "test:1")).toEqual(["k3"]);
      await store.inbox.reopen("k1");
      expect(await keysIn(store, "test:1")).toEqual(["k1", "k3"]);
      await store.inbox.withdraw(["k3", "k1"]);
      expect(await keysIn(store, "test:1")).toEqual([]);
      expect(await store.inbox.accept(eventOf("k3", "test:1"))).toBe("duplicate");
      expect(await keysIn(store, "test:1")).toEqual([]);
    });

    it("takes keys and conversations of any characters", async () => {
      const [key, id] = ["a\0b😀/%*[x]", "test:\0😀/%*[x]"];
      await store.inbox.accept(eventOf(key, id));
      expect(await keysIn(store, id)).toEqual([key]);
      await store.inbox.close([key]);
      expect(await keysIn(store, id)).toEqual([]);
    });
  });

  describe("of conversations by place", () => {
    it("lists the conversations within a place until they move or are deleted", async () => {
      await store.conversations.saveSettings("test:1", { within: ["test:guild:1", "test:channel:1"] });
      await store.conversations.saveSettings("test:2", { within: ["test:guild:1", "test:channel:2"] });
      await store.conversations.saveSettings("test:3", { title: "nowhere" });
      const within = async (place: string) => (await store.conversations.listWithin(place)).toSorted();
      expect(await within("test:guild:1")).toEqual(["test:1", "test:2"]);
      expect(await within("test:channel:1")).toEqual(["test:1"]);
      expect(await within("test:guild")).toEqual([]);

      await store.conversations.saveSettings("test:1", { title: "still there" });
      expect(await within("test:channel:1")).toEqual(["test:1"]);
      await store.conversations.saveSettings("test:1", { within: ["test:guild:2"] });
      expect(await within("test:guild:1")).toEqual(["test:2"]);
      expect(await within("test:channel:1")).toEqual([]);
      await store.erasure.deleteConversation("test:2");
      expect(await within("test:guild:1")).toEqual([]);
      expect(await within("test:guild:2")).toEqual(["test:1"]);
    });

    it("leave no trace of a deleted conversation and of a forgotten author", async () => {
      const author = { id: "test:secret-author", name: "Ann" };
      await store.conversations.append("test:secret-id", { ...messageOf("m1"), author });
      await store.conversations.append("test:shared", { ...messageOf("m2"), author });
      await store.conversations.append("test:shared", messageOf("m3"));
      await store.conversations.saveSettings("test:secret-id", { within: ["test:secret-place"] });
      expect((await current().bytes()).includes("secret-")).toBe(true);
      await store.erasure.forgetAuthor(undefined, author.id);
      expect((await current().bytes()).includes("secret-")).toBe(false);
    });

    it("forget an author's later messages too", async () => {
      const author = { id: "test:bob", name: "Bob" };
      await store.conversations.append("test:1", messageOf("m1"));
      for (const id of ["m2", "m3"]) {
        await store.conversations.append("test:1", { ...messageOf(id), author });
        expect(await store.erasure.forgetAuthor(undefined, author.id)).toMatchObject({ messages: 1 });
      }
    });
  });
});

describeStores("a store of version 1", (current) => {
  let store: Store;
  beforeEach(async () => {
    await writeOldStore(current().url);
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });

  it("has them filled at the first start", async () => {
    expect(await keysIn(store, "discord:10")).toEqual(["discord:13"]);
    expect(await keysIn(store, "discord:20")).toEqual([]);
    expect((await store.conversations.listWithin("discord:guild:1")).toSorted()).toEqual([
      "discord:10",
      "discord:20",
    ]);
    expect(await store.conversations.listWithin("discord:channel:3")).toEqual(["discord:20"]);
  });

  it("forgets an author everywhere, answered events included", async () => {
    expect(await store.erasure.forgetAuthor(undefined, "discord:ann")).toEqual({
      messages: 3,
      blobs: 0,
      conversations: 1,
    });
    const bytes = await current().bytes();
    for (const words of ["What is a sloop?", "Only Ann writes here."])
      expect(bytes.includes(words)).toBe(false);
    for (const words of ["And a ketch?", "Still open."]) expect(bytes.includes(words)).toBe(true);
    expect(await store.conversations.exists("discord:20")).toBe(false);
  });

  it("deletes a conversation with its answered events", async () => {
    await store.erasure.deleteConversation("discord:10");
    const bytes = await current().bytes();
    for (const words of ["What is a sloop?", "And a ketch?"]) expect(bytes.includes(words)).toBe(false);
    expect(await keysIn(store, "discord:10")).toEqual(["discord:13"]);
  });

  it("has its messages in today's form", async () => {
    const messages = await store.conversations.recent("discord:10", { maxMessages: 9 });
    expect(messages.map(({ turnKey, attempt, failure }) => [turnKey, attempt, failure])).toEqual([
      ["discord:11", undefined, undefined],
      ["discord:11", 1, "The gateway is away."],
      ["discord:11", 2, undefined],
      ["discord:12", undefined, undefined],
      ["discord:12", 1, undefined],
    ]);
    const found = await store.conversations.find("discord:10", "discord:11/assistant/1");
    expect(found).toEqual(messages[1]);
  });

  it("is filled once", async () => {
    await store.close();
    const entries: string[] = [];
    const log = { ...silentLog, info: (_: unknown, text: string) => void entries.push(text) };
    store = await openStore(current().url, { log });
    expect(entries).toEqual([]);
    expect(await keysIn(store, "discord:10")).toEqual(["discord:13"]);
  });
});
