import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("lists of conversations", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(async () => {
    await store.close();
  });
  const list = async (max: number) =>
    (await store.conversations.list("web:", { max })).map(({ title, isPinned }) =>
      isPinned === true ? `${title}, pinned` : title,
    );

  it("show names and pins, which survive the first message and go with the conversation", async () => {
    for (const id of ["web:a", "web:b", "web:c"]) {
      await store.conversations.append(id, messageOf(id, `About ${id}`));
      const now = Date.now();
      while (Date.now() === now) await new Promise((resolve) => setImmediate(resolve));
    }
    await store.conversations.saveSettings("web:a", { title: "Made of words", isPinned: true });
    expect(await list(10)).toEqual(["About web:c", "About web:b", "Made of words, pinned"]);
    await store.conversations.saveSettings("web:a", { name: "Given" });
    // A pinned one is in the list also where others fill it.
    expect(await list(1)).toEqual(["About web:c", "Given, pinned"]);
    const wanted = await store.conversations.list("web:", { max: 10, isWanted: (id) => id === "web:b" });
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
