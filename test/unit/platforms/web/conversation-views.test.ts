import { describe, expect, it } from "vitest";
import type { EndedTurn, OpenQuestion } from "../../../../src/core/receiver.ts";
import { createConversationViews } from "../../../../src/platforms/web/conversation-views.ts";
import { createFeeds } from "../../../../src/platforms/web/feed.ts";
import type { StoredMessage } from "../../../../src/core/storage.ts";
import type { Change, ItemView } from "../../../../src/platforms/web/views.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeReceiver, storedMessage } from "./fake-receiver.ts";
import { pageItem } from "./page-item.ts";

describe("a snapshot", () => {
  it("waits until the person's other windows have taken theirs, and nobody else waits for it", async () => {
    const receiver = createFakeReceiver();
    const annas = `web:@${"a".repeat(12)}:c`;
    const long = [storedMessage("1/user", "user", "x".repeat(8_000_000))];
    for (const id of ["web:c", annas]) receiver.stored.set(id, long);
    const views = createConversationViews(receiver, createFeeds(), new Map(), silentLog);
    const { signal } = new AbortController();
    const first = await views.takeSnapshot("web:c", 100, signal);
    await views.takeSnapshot("web:c", 100, signal);
    let isTaken = false;
    const third = views.takeSnapshot("web:c", 100, signal).finally(() => (isTaken = true));
    expect((await views.takeSnapshot(annas, 100, signal)).pieces.join("")).toContain("xxx");
    expect(isTaken).toBe(false);
    first.release();
    expect((await third).pieces.join("")).toContain("xxx");
  });
});

const question = (number: number, more: Partial<OpenQuestion> = {}): OpenQuestion => ({
  event: {
    kind: "message",
    key: `web:c:${number}`,
    platform: "web",
    conversationId: "web:c",
    author: { id: "web:local", name: "You" },
    sentAt: number,
    text: `question ${number}`,
    attachments: [],
    address: {},
  },
  hasBegun: false,
  ...more,
});

function setUp() {
  const receiver = createFakeReceiver();
  const feeds = createFeeds();
  const facts = {
    open: [] as readonly OpenQuestion[],
    ends: new Map<string, EndedTurn>(),
    whileRead: (): void => undefined,
  };
  const history = {
    ...receiver,
    async openQuestions() {
      const { open } = facts;
      facts.whileRead();
      return open;
    },
    ends: () => Promise.resolve(facts.ends),
  };
  const views = createConversationViews(history, feeds, new Map(), silentLog);
  const feed = feeds.of("web:c");
  const changes: Change[] = [];
  feed.listen(({ change }) => changes.push(change));
  return {
    views,
    feed,
    facts,
    changes,
    store: (...messages: StoredMessage[]) => receiver.stored.set("web:c", messages),
    read: async () => (await views.readRecord("web:c", 100)).items,
  };
}

const ids = (items: readonly ItemView[]) => items.map(({ id }) => id);

describe("the record of a conversation", () => {
  it("has its order, also where a question was sent before the answer above it, or a clock was set back", async () => {
    const { store, read } = setUp();
    store(
      storedMessage("1/user", "user", "one", { createdAt: 10 }),
      storedMessage("1/assistant/1", "assistant", "1", { createdAt: 40 }),
      storedMessage("2/user", "user", "two", { createdAt: 20 }),
      storedMessage("2/assistant/1", "assistant", "2", { createdAt: 50 }),
      storedMessage("3/user", "user", "three", { createdAt: 5 }),
    );
    const items = await read();
    expect(ids(items)).toEqual(["1/user", "1/assistant", "2/user", "2/assistant", "3/user"]);
    const orders = items.map(({ order }) => order);
    expect(orders).toEqual(orders.toSorted((one, other) => one - other));
    // A question keeps its place when it is stored.
    expect(orders.slice(0, 3)).toEqual([10, 10.25, 20]);
  });

  it("ends with the questions that are not answered yet, not with one that is older than what is shown", async () => {
    const { store, read, facts } = setUp();
    facts.open = [question(1, { hasBegun: true }), question(2), question(3)];
    store(storedMessage("web:c:2/user", "user", "question 2", { createdAt: 2 }));
    expect(ids(await read())).toEqual(["web:c:2/user", "web:c:1/user", "web:c:3/user"]);
    store(
      ...Array.from({ length: 100 }, (_, index) =>
        storedMessage(`web:c:${index + 2}/user`, "user", "question", { createdAt: index + 2 }),
      ),
    );
    expect(ids(await read())).not.toContain("web:c:1/user");
  });

  it("says how the latest attempt has ended, and which answer it has left", async () => {
    const { store, read, facts } = setUp();
    const failed = { kind: "failed", at: 1, isStored: true, why: "The gateway is away." } as const;
    facts.ends = new Map([
      ["1", { attempt: 3, end: { ...failed, keepsEarlier: true } }],
      ["2", { attempt: 2, end: { ...failed, canRetry: true } }],
      ["3", { attempt: 1, end: failed }],
    ]);
    store(
      storedMessage("1/assistant/2", "assistant", "kept"),
      storedMessage("2/assistant/2", "assistant", "half", { outcome: "interrupted", failure: "Broken." }),
      storedMessage("3/assistant/1", "assistant", "", { outcome: "failed", failure: "Refused." }),
    );
    const [kept, half, none] = await read();
    expect(kept).toMatchObject({ attempt: 3, state: "finished", text: "kept" });
    expect(kept?.notices.join()).toContain("The gateway is away.");
    expect(half).toMatchObject({ state: "failed", text: "half", failure: "Broken.", retryKey: "2" });
    expect(none).toMatchObject({ state: "failed", failure: "Refused." });
    expect(none).not.toHaveProperty("retryKey");
  });
});

describe("what the record says of a turn", () => {
  it("is told with what came after it, and is live no longer", async () => {
    const { views, feed, facts, changes, store } = setUp();
    facts.open = [question(9)];
    feed.put(pageItem("models/assistant", { text: "A list of models" }));
    feed.put(pageItem("1/user", { text: "one" }));
    feed.put(pageItem("1/assistant", { attempt: 1, state: "finished", text: "For both" }));
    store(
      storedMessage("0/user", "user", "zero"),
      storedMessage("1/user", "user", "one"),
      storedMessage("2/user", "user", "two"),
      storedMessage("1/assistant/1", "assistant", "For both"),
    );
    changes.length = 0;
    expect(await views.refresh("web:c", "1")).toEqual(new Set(["0", "1", "2"]));
    expect(changes.map((change) => change.kind === "put" && change.item.id)).toEqual([
      "1/user",
      "2/user",
      "1/assistant",
      "web:c:9/user",
    ]);
    expect(ids(feed.items())).toEqual(["models/assistant"]);
    changes.length = 0;
    await views.refresh("web:c", "models");
    expect(changes).toEqual([]);
  });

  it("is told before what people change while it is read", async () => {
    const { views, feed, facts, changes } = setUp();
    facts.open = [question(1), question(2)];
    let dropped: Promise<void> | undefined;
    facts.whileRead = () => {
      dropped = views.inOrder("web:c", async () => feed.drop("web:c:2/user"));
    };
    await views.refresh("web:c", "web:c:1");
    await dropped;
    expect(changes.map((change) => (change.kind === "put" ? change.item.id : change.kind))).toEqual([
      "web:c:1/user",
      "web:c:2/user",
      "drop",
    ]);
  });
});
