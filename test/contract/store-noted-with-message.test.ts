import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore, type Store } from "../../src/conversations/open-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { freshId, messageOf } from "../support/store-samples.ts";
import { describeStores } from "../support/stores.ts";

describeStores("what is noted with a message", (current) => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore(current().url, { log: silentLog });
  });
  afterEach(() => store.close());

  const id = freshId();
  const room = { isPeoples: true, readUpTo: "test:5" } as const;

  it("the places of a conversation come with its first message, and in one write", async () => {
    const { conversations } = store;
    const before = store.writes().commits;
    expect(
      await conversations.append(id, messageOf("1"), { within: ["test:guild:1", "test:channel:2"] }),
    ).toBe("appended");
    expect(store.writes().commits - before).toBe(1);
    expect(await conversations.settings(id)).toEqual({ within: ["test:guild:1", "test:channel:2"] });
    expect(await conversations.listWithin("test:guild:1")).toEqual([id]);
    expect(await conversations.listWithin("test:channel:2")).toEqual([id]);
    // A later message moves it nowhere.
    await conversations.append(id, messageOf("2"), { within: ["test:guild:3"] });
    expect(await conversations.settings(id)).toEqual({ within: ["test:guild:1", "test:channel:2"] });
    expect(await conversations.listWithin("test:guild:3")).toEqual([]);
  });

  it("places and other settings that are there stay", async () => {
    const { conversations } = store;
    await conversations.saveSettings(id, { model: "m", within: ["test:guild:1"], room: { isPeoples: true } });
    await conversations.append(id, messageOf("1"), {
      within: ["test:guild:3"],
      room: { readUpTo: "test:5" },
    });
    expect(await conversations.settings(id)).toEqual({ model: "m", within: ["test:guild:1"], room });
    expect(await conversations.listWithin("test:guild:1")).toEqual([id]);
    expect(await conversations.listWithin("test:guild:3")).toEqual([]);
  });

  it("what is known of a room changes with any message, in the same write", async () => {
    const { conversations } = store;
    await conversations.append(id, messageOf("1"), { room });
    const before = store.writes().commits;
    await conversations.append(id, messageOf("2"), { room: { readUpTo: "test:9" } });
    expect(store.writes().commits - before).toBe(1);
    expect(await conversations.settings(id)).toEqual({ room: { isPeoples: true, readUpTo: "test:9" } });
  });

  it("nothing is noted with a message that is stored already", async () => {
    const { conversations } = store;
    await conversations.append(id, messageOf("1"), { room });
    expect(await conversations.append(id, messageOf("1"), { room: { readUpTo: "test:9" } })).toBe(
      "duplicate",
    );
    expect(await conversations.settings(id)).toEqual({ room });
  });

  it("a conversation that is erased takes it along", async () => {
    const { conversations, erasure } = store;
    await conversations.append(id, messageOf("1"), { within: ["test:guild:1"], room });
    await erasure.deleteConversation(id);
    expect(await conversations.settings(id)).toEqual({});
    expect(await conversations.listWithin("test:guild:1")).toEqual([]);
    expect(await conversations.exists(id)).toBe(false);
  });
});
