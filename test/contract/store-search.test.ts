import { afterEach, beforeEach, expect, it } from "vitest";
import type { ConversationSearch, SearchPage } from "../../src/core/conversation-lists.ts";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("search", (current) => {
  let store: Store;
  beforeEach(async () => {
    // As in use: what is encrypted can be searched too.
    store = await openStore(current().url, {
      log: silentLog,
      encryptionKeys: [Buffer.alloc(32, 7).toString("base64")],
    });
  });
  afterEach(async () => {
    await store.close();
  });
  const search = (text: string, more: Partial<ConversationSearch> = {}): Promise<SearchPage> =>
    store.conversations.search("web:", {
      text,
      max: 20,
      maxMs: 60_000,
      signal: new AbortController().signal,
      ...more,
    });
  const ids = ({ found }: SearchPage) => found.map(({ conversationId }) => conversationId);

  it("finds all that was said, the newest first, in messages, titles and names", async () => {
    for (let n = 0; n < 45; n++)
      await store.conversations.append(
        "web:long",
        messageOf(`l${n}`, n === 1 ? "A café in Oslo" : `Line ${n}`),
      );
    await store.conversations.append("web:title", messageOf("t", "Bread"));
    await store.conversations.saveSettings("web:title", { name: "Travel to Oslo" });
    await store.conversations.append("web:both", messageOf("b1", "Oslo again"));
    await store.conversations.append("web:both", messageOf("b2", "and Oslo CAFE twice"));
    await store.conversations.append("slack:t:c", messageOf("s", "Oslo on Slack"));

    const all = await search("oslo");
    expect(new Set(ids(all))).toEqual(new Set(["web:both", "web:title", "web:long"]));
    expect(all.next).toBeUndefined();
    const both = all.found.find(({ conversationId }) => conversationId === "web:both");
    expect(both?.title).toBe("Oslo again");
    expect(both?.message).toMatchObject({ turnKey: "b2", role: "user" });
    expect(both?.message?.excerpt).toEqual([
      { text: "and ", isMatch: false },
      { text: "Oslo", isMatch: true },
      { text: " CAFE twice", isMatch: false },
    ]);
    expect(all.found.find(({ conversationId }) => conversationId === "web:title")?.message).toBeUndefined();
    // Both words in one message; accents do not count.
    expect(new Set(ids(await search("cafe oslo")))).toEqual(new Set(["web:both", "web:long"]));
    expect(ids(await search("bread oslo"))).toEqual([]);
    expect(ids(await search("  "))).toEqual([]);
    expect(ids(await search("oslo", { isWanted: (id) => id === "web:long" }))).toEqual(["web:long"]);
    // What is erased is not found.
    await store.erasure.removeMessages("web:long", { ids: ["l1"] });
    expect(ids(await search("cafe"))).toEqual(["web:both"]);
  });

  it("goes on where a page ended, until all were searched", async () => {
    for (let n = 0; n < 23; n++) await store.conversations.append(`web:${n}`, messageOf(`m${n}`, "the word"));
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await search("word", { max: 5, after });
      seen.push(...ids(page));
      after = page.next;
    } while (after !== undefined);
    expect(new Set(seen).size).toBe(23);
    // Without time each page searches at least one.
    const page = await search("nowhere", { maxMs: 0 });
    expect(page).toMatchObject({ found: [] });
    expect(page.next).toBeDefined();
    await expect(search("word", { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
  });
});
