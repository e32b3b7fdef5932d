import { describe, expect, it } from "vitest";
import { createFeeds, createListChanges } from "../../../../src/platforms/web/feed.ts";
import { pageItem } from "./page-item.ts";

function setUp() {
  const list = createListChanges();
  const feeds = createFeeds(undefined, (...changed) => list.follow(...changed));
  let told = 0;
  const changed: string[] = [];
  const stop = list.listen((conversationId, { isStored }) => {
    told += 1;
    if (isStored) changed.push(conversationId);
  });
  return { list, feed: feeds.of("web:1"), told: () => told, stop, changed };
}

describe("changes of the list of conversations", () => {
  it("say which answers are being made, once each", () => {
    const { list, feed, told } = setUp();
    feed.put(pageItem("q/user", { role: "user", state: "finished" }));
    expect([list.running(), told()]).toEqual([[], 0]);
    feed.put(pageItem("q/assistant", { state: "waiting" }));
    feed.setText("q/assistant", "One");
    feed.setText("q/assistant", "One two");
    expect([list.running(), told()]).toEqual([["web:1"], 1]);
    feed.put(pageItem("q/assistant", { state: "finished" }));
    expect([list.running(), told()]).toEqual([[], 2]);
  });

  it("end with a conversation that is deleted", () => {
    const { list, feed } = setUp();
    feed.put(pageItem("q/assistant", { state: "waiting" }));
    feed.clear();
    expect(list.running()).toEqual([]);
  });

  it("name the conversation whose entry has changed, and stop when nobody listens", () => {
    const { list, told, stop, changed } = setUp();
    list.touch("web:2");
    expect(changed).toEqual(["web:2"]);
    stop();
    list.touch("web:2");
    expect(told()).toBe(1);
  });
});
