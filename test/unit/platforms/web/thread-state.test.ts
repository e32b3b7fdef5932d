import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Feed } from "../../../../src/platforms/web/feed.ts";
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

const empty = page.fromSnapshot({ items: [], mayHaveMore: false });
const follow = (thread: Thread, changes: readonly Change[]): Thread | undefined =>
  changes.reduce<Thread | undefined>((before, change) => before && page.applyChange(before, change), thread);
const put = (item: ItemView): Change => ({ kind: "put", item });

const turns = 4;
const idOf = (turn: number, role: "user" | "assistant") => `${turn}/${role}`;

/** What the feed may say of a turn: its question, and an attempt that grows and ends. */
const said = fc
  .record({ turn: fc.nat(turns - 1), attempt: fc.integer({ min: 1, max: 3 }), text: fc.string() })
  .chain(({ turn, attempt, text }) => {
    const item = pageItem(idOf(turn, "assistant"), { attempt, order: turn + 0.25 });
    const before = { ...item, state: "growing", text: "" } as const;
    return fc.shuffledSubarray<Change>([
      put(pageItem(idOf(turn, "user"), { order: turn })),
      put({ ...item, state: "waiting" }),
      put(before),
      { kind: "text", id: item.id, at: 0, text },
      put({ ...before, state: "finished", text }),
    ]);
  });

/** What the record says at the end: each question, and the answer of its last attempt. */
const record = Array.from({ length: turns }, (_, turn) => [
  pageItem(idOf(turn, "user"), { order: turn, isStored: true, text: `question ${turn}` }),
  pageItem(idOf(turn, "assistant"), {
    order: turn + 0.25,
    isStored: true,
    attempt: 3,
    text: `answer ${turn}`,
  }),
]).flat();

/** What it said before: the answers of earlier attempts. */
const earlier = fc
  .subarray(record)
  .chain((items) =>
    fc
      .tuple(fc.constant(items), fc.integer({ min: 1, max: 2 }))
      .map(([some, attempt]) =>
        some.map((item) => put(item.role === "user" ? item : { ...item, attempt, text: "earlier" })),
      ),
  );

describe("what the page shows of a conversation", () => {
  it("is what the record says, in whatever order record and feed are heard", () => {
    const heard = fc.tuple(fc.array(said, { maxLength: 8 }), earlier).chain(([live, old]) =>
      fc.shuffledSubarray([...live.flat(), ...old, ...record.map(put)], {
        minLength: live.flat().length + old.length + record.length,
      }),
    );
    fc.assert(
      fc.property(heard, fc.nat(60), (changes, reloadedAt) => {
        let thread = empty;
        for (const [index, change] of changes.entries()) {
          // A text that its beginning has not come for, as after a reload, needs a snapshot.
          thread = page.applyChange(thread, change) ?? thread;
          if (index === reloadedAt) thread = page.fromSnapshot({ ...thread, mayHaveMore: false });
        }
        expect(thread.items).toEqual(record);
      }),
    );
  });

  it("is what the feed says of what the record does not have, whenever the page connected", () => {
    const step = fc.record({
      kind: fc.constantFrom("put", "grow", "drop"),
      id: fc.nat(3),
      text: fc.string({ maxLength: 6 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), (steps, connectsAt) => {
        const feed = new Feed();
        let thread: Thread | undefined = empty;
        let seen = feed.cursor;
        for (const [index, { kind, id, text }] of steps.entries()) {
          if (index === connectsAt) {
            thread = page.fromSnapshot({ items: feed.items(), mayHaveMore: false });
            seen = feed.cursor;
          }
          const itemId = `${id}/assistant`;
          const before = feed.get(itemId) ?? pageItem(itemId, { order: id, state: "growing" });
          if (kind === "drop") feed.drop(itemId);
          else feed.put({ ...before, text: kind === "grow" ? before.text + text : text });
        }
        thread = follow(
          thread,
          (feed.since(seen) ?? []).map(({ change }) => change),
        );
        expect(thread?.items).toEqual(feed.items().toSorted((one, other) => one.order - other.order));
      }),
    );
  });

  it("is read again where a change is missing, or what was stored is erased", () => {
    const half = page.applyChange(empty, put(pageItem("1/assistant", { text: "He" })))!;
    const text = { kind: "text", id: "1/assistant", at: 3, text: "lo" } as const;
    expect([empty, half].map((thread) => page.applyChange(thread, text))).toEqual([undefined, undefined]);
    expect(page.applyChange(half, { kind: "again" })).toBeUndefined();
  });
});
