import { describe, expect, it } from "vitest";
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
