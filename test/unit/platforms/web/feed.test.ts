import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergeItems } from "../../../../src/platforms/web/conversation-views.ts";
import { createFeeds, Feed } from "../../../../src/platforms/web/feed.ts";
import type { Change, ItemView, SnapshotView } from "../../../../src/platforms/web/views.ts";
import { pageItem } from "./page-item.ts";
import { loadPageModule } from "./page-module.ts";

interface Thread {
  readonly items: readonly ItemView[];
}
const page = await loadPageModule<{
  readonly fromSnapshot: (snapshot: SnapshotView) => Thread;
  readonly applyChange: (thread: Thread, change: Change) => Thread | undefined;
}>("thread-state");

describe("a page that follows a feed", () => {
  it("shows the server's items, whenever it connected and reconnected", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("write" as const), id: fc.nat(3), text: fc.string({ maxLength: 6 }) }),
      fc.record({ kind: fc.constant("append" as const), id: fc.nat(3), text: fc.string({ maxLength: 6 }) }),
      fc.record({ kind: fc.constant("put" as const), id: fc.nat(5), text: fc.string({ maxLength: 4 }) }),
      fc.record({ kind: fc.constant("drop" as const), id: fc.nat(5) }),
    );
    fc.assert(
      fc.property(
        fc.array(step, { maxLength: 40 }),
        fc.nat(40),
        fc.nat(40),
        (steps, connectsAt, disconnectsAt) => {
          const feed = new Feed();
          const all: { id: string; change: Change }[] = [];
          feed.listen((change) => all.push(change));
          let thread: Thread | undefined;
          let seen = "";
          for (const [index, one] of steps.entries()) {
            if (index === connectsAt) {
              thread = page.fromSnapshot({ items: mergeItems([], feed), mayHaveMore: false });
              seen = feed.cursor;
              all.length = 0;
            }
            const id = `${one.id}/assistant`;
            if (one.kind === "write") feed.setText(id, one.text);
            else if (one.kind === "append") feed.setText(id, (feed.get(id)?.text ?? "") + one.text);
            else if (one.kind === "put") feed.put(pageItem(id, { text: one.text, state: "growing" }));
            else feed.drop(id);
            // A connected page applies each change. A disconnected one later gets those after its cursor.
            if (thread !== undefined && index < disconnectsAt) {
              for (const { id: number, change } of all.splice(0)) {
                thread = page.applyChange(thread, change);
                expect(thread).toBeDefined();
                seen = number;
                if (thread === undefined) return;
              }
            }
          }
          if (thread === undefined) return;
          for (const { change } of feed.since(seen) ?? []) thread = page.applyChange(thread!, change);
          expect(thread?.items).toEqual(feed.items());
        },
      ),
    );
  });

  it("gets only the appended text of a streamed answer", () => {
    const feed = new Feed();
    const changes: Change[] = [];
    feed.put(pageItem("1/assistant", { state: "growing", text: "Hel" }));
    feed.listen(({ change }) => changes.push(change));
    feed.setText("1/assistant", "Hello");
    expect(changes).toEqual([{ kind: "text", id: "1/assistant", at: 3, text: "lo" }]);
    expect(
      page.applyChange({ items: [pageItem("1/assistant", { text: "He" })] }, changes[0]!),
    ).toBeUndefined();
  });

  it("needs a snapshot after more than 500 missed changes or a restart", () => {
    const feed = new Feed();
    feed.put(pageItem("1/user"));
    const early = feed.cursor;
    for (let index = 0; index < 600; index++) feed.put(pageItem("1/user", { text: `${index}` }));
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
    feed.setText("q/assistant", "One");
    feed.setText("q/assistant", "One two");
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
