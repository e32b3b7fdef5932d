import { describe, expect, it } from "vitest";
import type { OpenQuestion } from "../../../../src/core/platform.ts";
import { createConversationViews, mergeItems } from "../../../../src/platforms/web/conversation-views.ts";
import { createFeeds, Feed } from "../../../../src/platforms/web/feed.ts";
import type { Change } from "../../../../src/platforms/web/views.ts";
import { silentLog } from "../../../support/silent-log.ts";
import { createFakeReceiver, storedMessage } from "./fake-receiver.ts";
import { pageItem } from "./page-item.ts";

describe("mergeItems", () => {
  const history = [
    pageItem("1/user", { createdAt: 10 }),
    pageItem("1/assistant", { createdAt: 20, text: "kept" }),
  ];

  it("shows each message once, a running answer in its live form", () => {
    const feed = new Feed();
    feed.put(pageItem("1/assistant", { state: "growing", text: "again", createdAt: 20 }));
    feed.put(pageItem("2/user", { createdAt: 30 }));
    const merged = mergeItems(history, feed);
    expect(merged.map(({ id, text }) => [id, text])).toEqual([
      ["1/user", ""],
      ["1/assistant", "again"],
      ["2/user", ""],
    ]);
  });

  it("keeps the Retry of a failure, which is not stored", () => {
    const feed = new Feed();
    feed.put(pageItem("1/assistant", { state: "failed", failure: "No.", retryKey: "1" }));
    expect(mergeItems(history, feed)[1]).toMatchObject({ text: "kept", failure: "No.", retryKey: "1" });
  });

  it("discards stored items, and sorts the others in by time", () => {
    const feed = new Feed();
    feed.put(pageItem("0/user", { createdAt: 5, text: "/models" }));
    feed.put(pageItem("1/user", { createdAt: 10 }));
    expect(mergeItems(history, feed).map(({ id }) => id)).toEqual(["0/user", "1/user", "1/assistant"]);
    expect(feed.get("1/user")).toBeUndefined();
    expect(feed.get("0/user")).toBeDefined();
  });
});

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

describe("questions that are not answered yet", () => {
  const receiver = createFakeReceiver();
  const event = (number: number, more: Partial<OpenQuestion> = {}): OpenQuestion => ({
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
  let open: readonly OpenQuestion[] = [];
  const feeds = createFeeds();
  const history = { ...receiver, openQuestions: () => Promise.resolve(open) };
  const views = createConversationViews(history, feeds, new Map(), silentLog);
  const shown = async () => {
    const { items } = (await views.readHistory("web:c", 100))();
    return items.map(({ id, isWaiting }) => `${id}${isWaiting === true ? " waits" : ""}`);
  };

  it("are shown in order, below the answers before them, until somebody has withdrawn or begun them", async () => {
    open = [event(1, { hasBegun: true }), event(2), event(3)];
    expect(await shown()).toEqual(["web:c:1/user", "web:c:2/user waits", "web:c:3/user waits"]);
    const feed = feeds.of("web:c");
    const changes: Change[] = [];
    feed.listen(({ change }) => changes.push(change));
    feed.put(pageItem("web:c:1/assistant", { state: "waiting" }));
    expect(changes).toMatchObject([{ kind: "put", before: "web:c:2/user" }]);
    open = [event(1, { hasBegun: true }), event(2)];
    expect(await shown()).toEqual(["web:c:1/user", "web:c:1/assistant", "web:c:2/user waits"]);
    expect(changes.at(-1)).toEqual({ kind: "drop", id: "web:c:3/user" });
    feed.begin("web:c:2/user");
    expect(await shown()).toEqual(["web:c:1/user", "web:c:1/assistant", "web:c:2/user"]);
  });

  it("are shown once where they are stored, and not where they are older than what is shown", async () => {
    open = [event(1, { hasBegun: true }), event(2)];
    receiver.stored.set("web:c", [storedMessage("web:c:2/user", "user", "question 2", { createdAt: 2 })]);
    feeds.of("web:c").clear();
    expect(await shown()).toEqual(["web:c:1/user", "web:c:2/user"]);
    const many = Array.from({ length: 100 }, (_, index) =>
      storedMessage(`web:c:${index + 2}/user`, "user", "question", { createdAt: index + 2 }),
    );
    receiver.stored.set("web:c", many);
    feeds.of("web:c").clear();
    expect((await shown())[0]).toBe("web:c:2/user");
  });
});

describe("settle", () => {
  it("replaces the live answer to a batch, not an earlier answer that is not stored", async () => {
    const receiver = createFakeReceiver();
    const feeds = createFeeds();
    const views = createConversationViews(receiver, feeds, new Map(), silentLog);
    const feed = feeds.of("web:c");
    feed.put(pageItem("models/assistant", { createdAt: 5, text: "A list of models" }));
    feed.put(
      pageItem("private/assistant", { createdAt: 30, text: "Not stored", isPrivate: true, state: "failed" }),
    );
    feed.put(pageItem("second/assistant", { createdAt: 20, text: "For both" }));
    receiver.stored.set("web:c", [
      storedMessage("first/assistant/1", "assistant", "For both", { createdAt: 40 }),
    ]);
    const changes: Change[] = [];
    feed.listen(({ change }) => changes.push(change));
    await views.settle("web:c");
    expect(changes).toMatchObject([
      { kind: "put", item: { id: "first/assistant" }, replaces: "second/assistant" },
    ]);
    expect(feed.items().map(({ id }) => id)).toEqual(["models/assistant", "private/assistant"]);
  });
});
