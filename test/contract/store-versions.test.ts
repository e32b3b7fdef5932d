import { beforeEach, expect, it } from "vitest";
import type { Store } from "../../src/conversations/open-store.ts";
import { writeOldStore } from "../support/old-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeStores } from "../support/stores.ts";

describeStores("a store of version 1", (current) => {
  let store: Store;
  beforeEach(async () => {
    await writeOldStore(current().url);
    store = await current().open();
  });
  const keysIn = async (conversationId: string) =>
    (await store.inbox.listOpenIn(conversationId)).map(({ event }) => event.key);

  it("has them filled at the first start", async () => {
    expect(await keysIn("discord:10")).toEqual(["discord:13"]);
    expect(await keysIn("discord:20")).toEqual([]);
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
    expect(await keysIn("discord:10")).toEqual(["discord:13"]);
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
    const entries: string[] = [];
    const log = { ...silentLog, info: (_: unknown, text: string) => void entries.push(text) };
    store = await current().reopen({ log });
    expect(entries).toEqual([]);
    expect(await keysIn("discord:10")).toEqual(["discord:13"]);
  });
});
