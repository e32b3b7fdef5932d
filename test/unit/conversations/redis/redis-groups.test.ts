import { describe, expect, it } from "vitest";
import type { BackendChange } from "../../../../src/conversations/backend.ts";
import { splitByGroup } from "../../../../src/conversations/redis/redis-backend.ts";
import {
  clusterNames,
  keyOf,
  namespaceOf,
  tagOfEntry,
  tagOfIndex,
} from "../../../../src/conversations/redis/redis-script.ts";
import { entryAt, indexes } from "../../../../src/conversations/key-value.ts";

const id = "slack:T1:C{2}:1/%2F";
const head: BackendChange = { kind: "set", at: entryAt.head(id), value: "1", expires: undefined };
const slot: BackendChange = { kind: "set", at: entryAt.slot(id, 0), value: "2", expires: undefined };
const listed: BackendChange = { kind: "add-member", index: indexes.platforms, member: "slack", score: 0 };
const unlisted: BackendChange = { kind: "remove-member", index: indexes.conversations("slack"), member: id };

describe("the keys of a cluster", () => {
  it("of a conversation share a hash tag, blobs and their index included", () => {
    const tags = [
      entryAt.head(id),
      entryAt.settings(id),
      entryAt.slot(id, 3),
      entryAt.messageId(id, "m/{x}"),
      entryAt.blob(id, "0".repeat(64)),
    ].map(tagOfEntry);
    expect(new Set([...tags, tagOfIndex(indexes.blobs(id))]).size).toBe(1);
    expect(tags[0]).not.toBe(tagOfEntry(entryAt.head(`${id}/`)));
  });

  it("of the inbox and the indexes share another one, and those of the counts a third", () => {
    const inbox = [entryAt.event("{k}"), entryAt.turn("k")].map(tagOfEntry);
    const sorted = [indexes.openEvents, indexes.openEventsIn(id), indexes.answeredEventsBy("a")].map(
      tagOfIndex,
    );
    expect(new Set([...inbox, ...sorted])).toEqual(new Set(["{parley}"]));
    const counts = [
      indexes.turns(1),
      indexes.spent("2026-01-01"),
      indexes.countedIndexes,
      indexes.usageDaysOf("a"),
    ];
    expect(new Set(counts.map(tagOfIndex))).toEqual(new Set(["{ledger}"]));
  });

  it("begin with the tag, whatever braces are in the rest, and are read without it", () => {
    const at = entryAt.event("{other}");
    expect(clusterNames.entry(at)).toBe("parley:inbox::{parley}{other}");
    expect(keyOf(clusterNames.entry(at).slice(`${namespaceOf(at.space)}::`.length))).toBe("{other}");
  });
});

describe("a write of several groups", () => {
  it("adds to indexes before, decides in one group, and does the rest after it", () => {
    expect(splitByGroup([entryAt.slot(id, 0)], [listed, slot, head, unlisted])).toEqual({
      before: [{ conditions: [], changes: [listed] }],
      main: { conditions: [entryAt.slot(id, 0)], changes: [slot, head] },
      after: [{ conditions: [], changes: [listed, unlisted] }],
    });
  });

  it("without conditions is decided where its entries are, and of one group stays one write", () => {
    expect(splitByGroup([], [unlisted, head]).main.changes).toEqual([head]);
    expect(splitByGroup([], [slot, head])).toEqual({
      before: [],
      main: { conditions: [], changes: [slot, head] },
      after: [],
    });
    expect(splitByGroup([], [listed, unlisted])).toMatchObject({ before: [], after: [] });
  });

  it("cannot have conditions in two groups", () => {
    expect(() => splitByGroup([entryAt.event("k"), entryAt.head(id)], [])).toThrow(RangeError);
  });
});
