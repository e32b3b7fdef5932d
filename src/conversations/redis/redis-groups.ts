import type { BackendChange, WriteCondition } from "../backend.ts";
import { tagOfEntry, tagOfIndex } from "./redis-layout.ts";

/** A write of one group: one script on one server of a cluster. */
export interface GroupWrite {
  readonly conditions: readonly WriteCondition[];
  readonly changes: readonly BackendChange[];
}

/** An atomic write of several groups as writes that follow each other. */
export interface SplitWrite {
  /** Members of indexes: an index may list too much, never too little. */
  readonly before: readonly GroupWrite[];
  /** Decides: with the conditions, or with the first entries. */
  readonly main: GroupWrite;
  /** Only when `main` was applied. The members of `before` again: a reader may have removed what lists nothing yet. */
  readonly after: readonly GroupWrite[];
}

/**
 * Splits a write by the groups of its keys. A crash between two of them leaves members of indexes that list nothing,
 * which readers pass over and the next write or sweep removes.
 * @throws RangeError when the conditions are of several groups
 */
export function splitByGroup(
  conditions: readonly WriteCondition[],
  changes: readonly BackendChange[],
): SplitWrite {
  const groups = Map.groupBy(changes, tagOf);
  const tags = new Set(conditions.map(tagOfEntry));
  if (tags.size > 1) throw new RangeError("the conditions of a write are of several groups");
  const [mainTag = ""] = [
    ...tags,
    ...changes.filter((change) => "at" in change).map(tagOf),
    ...groups.keys(),
  ];
  const others = [...groups].filter(([tag]) => tag !== mainTag).map(([, each]) => each);
  return {
    before: toWrites(others.map((each) => each.filter(isAdding))),
    main: { conditions, changes: groups.get(mainTag) ?? [] },
    after: toWrites(others),
  };
}

function tagOf(change: BackendChange): string {
  return "at" in change ? tagOfEntry(change.at) : tagOfIndex(change.index);
}

/** Whether all it can do is put a member into an index. */
export function isAdding({ kind }: BackendChange): boolean {
  return kind === "add-member" || kind === "append-member";
}

function toWrites(groups: readonly (readonly BackendChange[])[]): GroupWrite[] {
  return groups.filter((changes) => changes.length > 0).map((changes) => ({ conditions: [], changes }));
}
