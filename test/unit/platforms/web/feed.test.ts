import { describe, expect, it } from "vitest";
import { createFeeds, Feed } from "../../../../src/platforms/web/feed.ts";
import type { Change } from "../../../../src/platforms/web/views.ts";
import { pageItem } from "./page-item.ts";

describe("a feed", () => {
  it("sends only the text or the thoughts that were appended to an answer", () => {
    const feed = new Feed();
    const changes: Change[] = [];
    const item = pageItem("1/assistant", { state: "growing", text: "Hel" });
    feed.put(item);
    feed.listen(({ change }) => changes.push(change));
    feed.put({ ...item, text: "Hello" });
    feed.put({ ...item, text: "Hello", thoughts: "A greeting" });
    expect(changes).toEqual([
      { kind: "text", id: "1/assistant", at: 3, text: "lo" },
      { kind: "text", id: "1/assistant", at: 0, text: "A greeting", isThought: true },
    ]);
    const others = [
      { ...item, text: "Help" },
      { ...item, text: "Help me", state: "finished" as const },
    ];
    for (const other of others) feed.put(other);
    expect(changes.slice(2)).toEqual(others.map((other) => ({ kind: "put", item: other })));
  });

  it("holds an item no longer that is stored, unless a later attempt at it runs", () => {
    const feed = new Feed();
    feed.put(pageItem("1/user"));
    feed.put(pageItem("1/assistant", { attempt: 2, state: "growing" }));
    const stored = [
      pageItem("1/user", { isStored: true }),
      pageItem("1/assistant", { attempt: 1, isStored: true }),
    ];
    feed.take(stored);
    expect(feed.items().map(({ id }) => id)).toEqual(["1/assistant"]);
    feed.take([{ ...stored[1]!, attempt: 2 }]);
    expect(feed.items()).toEqual([]);
  });

  it("makes pages read everything again once something was erased", () => {
    const feed = new Feed();
    const changes: Change[] = [];
    feed.listen(({ change }) => changes.push(change));
    feed.afterErasure();
    expect(changes).toEqual([]);
    feed.forget();
    for (let time = 0; time < 2; time++) feed.afterErasure();
    expect(changes).toEqual([{ kind: "again" }]);
  });

  it("has forgotten what was missed after more than 500 changes or a restart", () => {
    const feed = new Feed();
    feed.put(pageItem("1/user"));
    const early = feed.cursor;
    for (let index = 0; index < 600; index++) feed.put(pageItem("1/user", { text: `${index} ` }));
    expect(feed.since(early)).toBeUndefined();
    expect(feed.since(new Feed().cursor)).toBeUndefined();
    expect(feed.since("nonsense")).toBeUndefined();
    expect(feed.since(feed.cursor)).toEqual([]);
  });
});
describe("feeds", () => {
  it("are bounded in items and bytes", () => {
    const feed = new Feed();
    for (let index = 0; index < 300; index++) feed.put(pageItem(`${index}/user`));
    expect(feed.items().length).toBeLessThanOrEqual(101);
    for (let index = 0; index < 10; index++) feed.cacheFile(`${index}`, new Uint8Array(10_000_000));
    expect(feed.file("9")).toBeDefined();
    expect(feed.file("0")).toBeUndefined();
  });

  it("are dropped when no page listens and no answer is being made", () => {
    const feeds = createFeeds(2);
    const running = feeds.of("a");
    running.put(pageItem("1/assistant", { state: "waiting" }));
    const watched = feeds.of("b");
    watched.listen(() => undefined);
    const quiet = feeds.of("c");
    feeds.of("d");
    expect(feeds.of("a")).toBe(running);
    expect(feeds.of("b")).toBe(watched);
    expect(feeds.of("c")).not.toBe(quiet);
  });
});

function setUp() {
  const feeds = createFeeds();
  let told = 0;
  const changed: string[] = [];
  const stop = feeds.listen((conversationId, { isStored }) => {
    told += 1;
    if (isStored) changed.push(conversationId);
  });
  return { feeds, feed: feeds.of("web:1"), told: () => told, stop, changed };
}

describe("changes of the list of conversations", () => {
  it("say which answers are being made, once each", () => {
    const { feeds, feed, told } = setUp();
    feed.put(pageItem("q/user", { role: "user", state: "finished" }));
    expect([feeds.running(), told()]).toEqual([[], 0]);
    feed.put(pageItem("q/assistant", { state: "waiting" }));
    feed.put(pageItem("q/assistant", { state: "growing", text: "One" }));
    feed.put(pageItem("q/assistant", { state: "growing", text: "One two" }));
    expect([feeds.running(), told()]).toEqual([["web:1"], 1]);
    feed.put(pageItem("q/assistant", { state: "finished" }));
    expect([feeds.running(), told()]).toEqual([[], 2]);
  });

  it("end with a conversation that is deleted", () => {
    const { feeds, feed } = setUp();
    feed.put(pageItem("q/assistant", { state: "waiting" }));
    feed.clear();
    expect(feeds.running()).toEqual([]);
  });

  it("name the conversation whose entry has changed, and stop when nobody listens", () => {
    const { feeds, told, stop, changed } = setUp();
    feeds.touch("web:2");
    expect(changed).toEqual(["web:2"]);
    stop();
    feeds.touch("web:2");
    expect(told()).toBe(1);
  });
});
