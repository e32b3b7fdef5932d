import { beforeEach, expect, it } from "vitest";
import type { ConversationSearch, SearchPage } from "../../src/core/storage.ts";
import { backendOf } from "../../src/conversations/backends.ts";
import type { Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("lists of conversations", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await current().open();
  });
  const list = async (max: number) =>
    (await store.lists.list("web:", { max })).map(({ title, isPinned }) =>
      isPinned === true ? `${title}, pinned` : title,
    );

  it("show names and pins, which survive the first message and go with the conversation", async () => {
    for (const id of ["web:a", "web:b", "web:c"]) {
      await store.conversations.append(id, messageOf(id, `About ${id}`));
      await pastThisMillisecond();
    }
    await store.conversations.saveSettings("web:a", { title: "Made of words", isPinned: true });
    expect(await list(10)).toEqual(["About web:c", "About web:b", "Made of words, pinned"]);
    await store.conversations.saveSettings("web:a", { name: "Given" });
    // A pinned conversation is in the list even where others fill it.
    expect(await list(1)).toEqual(["About web:c", "Given, pinned"]);
    const wanted = await store.lists.list("web:", { max: 10, isWanted: (id) => id === "web:b" });
    expect(wanted.map(({ conversationId }) => conversationId)).toEqual(["web:b"]);

    await store.erasure.removeMessages("web:a", { ids: ["web:a"] });
    await store.conversations.append("web:a", messageOf("later", "Something else"));
    expect(await store.conversations.settings("web:a")).toEqual({ name: "Given", isPinned: true });
    await store.conversations.saveSettings("web:a", { name: undefined, isPinned: undefined });
    expect(await list(1)).toEqual(["Conversation"]);
    expect(await list(3)).toHaveLength(3);

    await store.conversations.saveSettings("web:a", { isPinned: true });
    await store.erasure.deleteConversation("web:a");
    expect(await list(1)).toEqual(["About web:c"]);
  });
});

describeStores("search", (current) => {
  let store: Store;
  beforeEach(async () => {
    // Like in use, encrypted text can be searched too.
    store = await current().open({ encryptionKeys: [Buffer.alloc(32, 7).toString("base64")] });
  });
  const search = (text: string, more: Partial<ConversationSearch> = {}): Promise<SearchPage> =>
    store.lists.search("web:", {
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
    // Both words are in one message, and accents do not count.
    expect(new Set(ids(await search("cafe oslo")))).toEqual(new Set(["web:both", "web:long"]));
    expect(ids(await search("bread oslo"))).toEqual([]);
    expect(ids(await search("  "))).toEqual([]);
    expect(ids(await search("oslo", { isWanted: (id) => id === "web:long" }))).toEqual(["web:long"]);
    // Erased messages are not found.
    await store.erasure.removeMessages("web:long", { ids: ["l1"] });
    expect(ids(await search("cafe"))).toEqual(["web:both"]);
  });

  it("goes on where a page ended, until all were searched", async () => {
    for (let n = 0; n < 23; n++) await store.conversations.append(`web:${n}`, messageOf(`m${n}`, "the word"));
    const seen: string[] = [];
    for (let after: string | undefined, pages = 0; pages === 0 || after !== undefined; pages++) {
      expect(pages).toBeLessThanOrEqual(5);
      const page = await search("word", { max: 5, after });
      seen.push(...ids(page));
      after = page.next;
    }
    expect(seen).toHaveLength(23);
    expect(new Set(seen).size).toBe(23);
    // Without time each page searches at least one.
    const page = await search("nowhere", { maxMs: 0 });
    expect(page).toMatchObject({ found: [] });
    expect(page.next).toBeDefined();
    await expect(search("word", { signal: AbortSignal.abort(new Error("gone")) })).rejects.toThrow("gone");
  });

  it("moves on among 1,000 conversations of one millisecond, while some of them go", async () => {
    const all = Array.from({ length: 1000 }, (_, n) => `web:${n}`);
    await Promise.all(all.map((id) => store.conversations.saveSettings(id, { name: "the word" }, "soon")));
    await sameTime(current().url, all);
    const seen: string[] = [];
    const gone = new Set<string>();
    for (let after: string | undefined, pages = 0; pages === 0 || after !== undefined; pages++) {
      expect(pages).toBeLessThanOrEqual(20);
      const page = await search("word", { max: 50, after });
      seen.push(...ids(page));
      // The one that the next page begins after goes, and one that was not found yet.
      for (const id of [ids(page).at(-1), all.find((one) => !seen.includes(one))]) {
        if (id === undefined) continue;
        gone.add(id);
        await store.erasure.deleteConversation(id);
      }
      after = page.next;
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(all.filter((id) => !seen.includes(id) && !gone.has(id))).toEqual([]);
    // So does the list, in its pages of 200.
    expect(await store.lists.list("web:", { max: 2000 })).toHaveLength(1000 - gone.size);
    // Some 3,000 writes to Postgres take 4 s on a quiet machine.
  }, 240_000);
});

/** Gives conversations of the page one time of their last message. */
async function sameTime(url: string, ids: readonly string[]): Promise<void> {
  const { backend } = await backendOf(url).open(url, { log: silentLog, exclusive: false });
  const [index, score] = ["conversations:web", Date.now() + 60_000];
  await backend.apply(
    [],
    ids.map((member) => ({ kind: "add-member", index, member, score })),
  );
  await backend.close();
}

async function pastThisMillisecond(): Promise<void> {
  const now = Date.now();
  while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
}
