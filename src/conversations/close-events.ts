import type { TurnProgress } from "../core/inbox.ts";
import { indexAnswered, unindexOpen } from "./event-index.ts";
import { answeredTtlMs, type InboxRecord, keptMs, toClosed } from "./inbox-record.ts";
import type { Change } from "./key-value.ts";
import { entryAt, indexes } from "./store-keys.ts";

/** An event to be closed, as it was read. `record` undefined: the store has lost it, and this process does not know it. */
export interface FoundEvent {
  readonly key: string;
  readonly record: InboxRecord | undefined;
  /** As the store has it. */
  readonly turn: TurnProgress | undefined;
}

/** What closes events. */
export interface Closing {
  readonly changes: readonly Change[];
  /** Those whose content is kept. */
  readonly answered: readonly InboxRecord[];
  /** Whether content is erased with it, and must be overwritten on the disk. */
  readonly isErased: boolean;
}

/**
 * What closes events. Those that the store lost are stored again, so that a late delivery is a duplicate.
 * @param retentionMs how long messages are kept; default for ever
 */
export function toClosing(
  found: readonly FoundEvent[],
  { retentionMs, isShared }: { readonly retentionMs?: number | undefined; readonly isShared: boolean },
): Closing {
  const changes: Change[] = [];
  const answered: InboxRecord[] = [];
  let isErased = false;
  for (const { key, record, turn } of found) {
    if (record === undefined) {
      changes.push({ kind: "remove-member", index: indexes.openEvents, member: key });
    } else {
      const closed = toClosed(record);
      isErased ||= closed.isForgotten === true && record.isForgotten !== true;
      const ttlMs = closed.isForgotten === true ? answeredTtlMs : keptMs(record, retentionMs);
      changes.push({ kind: "set", at: entryAt.event(key), value: closed, ttlMs });
      changes.push(...unindexOpen(record.event));
      if (closed.isForgotten !== true) {
        changes.push(...indexAnswered(record.event, ttlMs));
        answered.push(record);
      }
    }
    const at = entryAt.turn(key);
    if (record?.isForgotten === true) changes.push({ kind: "delete", at });
    else if (turn !== undefined) {
      const ttlMs = record === undefined ? answeredTtlMs : keptMs(record, retentionMs);
      // A server that has taken another one's place may lack what was read from that: it is written anew.
      changes.push(isShared ? { kind: "set", at, value: turn, ttlMs } : { kind: "keep", at, ttlMs });
    }
  }
  return { changes, answered, isErased };
}
