import { isDeepStrictEqual } from "node:util";
import type { ParleyError } from "../core/errors.ts";
import type { IncomingEvent } from "../core/events.ts";
import type {
  HeardPart,
  NewEdit,
  Redo,
  ReopenReason,
  ReplacedAnswer,
  StoppedAnswer,
  TurnProgress,
} from "../core/inbox.ts";
import { systemClock } from "../support/clock.ts";
import {
  after,
  answeredTtlMs,
  editsOf,
  indexAnswered,
  indexOpen,
  type InboxRecord,
  isGone,
  isOver,
  keptMs,
  nextOf,
  orderOf,
  saveProgress,
  saveRecord,
  toClosed,
  toEdited,
  toErased,
  toReopened,
  toWithdrawn,
  unindexAnswered,
  unindexOpen,
} from "./inbox-record.ts";
import { type Change, entryAt, indexes } from "./key-value.ts";

/** An event and the turn that begins with it, as the store has them. */
export interface FoundEvent {
  readonly key: string;
  readonly record: InboxRecord | undefined;
  readonly turn: TurnProgress | undefined;
  /** Set if one of them cannot be read. */
  readonly damage?: ParleyError;
}

/** How events change. Without changes nothing is written. */
export interface Decision<T> {
  readonly result: T;
  readonly changes?: readonly Change[];
}

/**
 * Implements {@link Inbox.claimTurn}. Returns the claimed records, unless one is answered or claimed, or the
 * reply has moved on: a process that was late in noticing the loss of its lease has shown more of it.
 */
export function claimEvents(
  found: readonly FoundEvent[],
  turn: TurnProgress,
): Decision<readonly InboxRecord[] | undefined> {
  const isLost = found.some(
    ({ record, turn: own }) =>
      (record !== undefined && after("claim", record) === undefined) ||
      Math.max(record?.attempts ?? 0, own?.attempts ?? 0) >= turn.attempts,
  );
  const saved = found[0]?.turn?.address ?? turn.address;
  if (isLost || !isDeepStrictEqual(saved, turn.address)) return { result: undefined };
  const claimed: InboxRecord[] = [];
  const changes = saveProgress(turn);
  for (const { record: known } of found) {
    if (known === undefined) continue;
    const record = { ...known, ...nextOf(known), attempts: turn.attempts };
    claimed.push(record);
    changes.push(saveRecord(record));
  }
  return { result: claimed, changes };
}

/** Implements {@link Inbox.stop}. The result is `undefined` if the event is not open. */
export function stopEvent(
  { record }: Partial<FoundEvent> = {},
  by: string,
  answer: StoppedAnswer | undefined,
): Decision<InboxRecord | undefined> {
  const state = record === undefined ? undefined : after("stop", record);
  if (record === undefined || state === undefined) return { result: undefined };
  const stoppedAnswer = answer === undefined ? {} : { stoppedAnswer: answer };
  const value = { ...record, ...nextOf(record), state, stoppedBy: by, ...stoppedAnswer };
  return { result: value, changes: [saveRecord(value)] };
}

/** Implements {@link Inbox.keepHeard}. The result is `undefined` if the event is not open. */
export function hearPart(
  { record }: Partial<FoundEvent> = {},
  part: HeardPart,
): Decision<InboxRecord | undefined> {
  if (record === undefined || after("hear", record) === undefined) return { result: undefined };
  const value = { ...record, ...nextOf(record), heard: [...(record.heard ?? []), part] };
  return { result: value, changes: [saveRecord(value)] };
}

/** What the caller of a closing knows of the events. */
interface ClosingOptions {
  readonly attempts: number | undefined;
  readonly edits: ReadonlyMap<string, number> | undefined;
  /** How long messages are kept, by default for ever. */
  readonly retentionMs: number | undefined;
}

/** Implements {@link Inbox.close}. Returns `undefined` after a later claimed attempt or a further edit. */
export function closeEvents(
  found: readonly FoundEvent[],
  { attempts, edits, retentionMs }: ClosingOptions,
): Decision<Closing | undefined> {
  const isOvertaken = found.some(({ key, record }) => {
    if (attempts !== undefined && (record?.attempts ?? 0) > attempts) return true;
    if (edits === undefined || record === undefined || isGone(record)) return false;
    return editsOf(record) > (edits.get(key) ?? 0);
  });
  if (isOvertaken) return { result: undefined };
  const result = toClosing(found, retentionMs);
  return { result, changes: result.changes };
}

/** The result of closing events. */
interface Closing {
  readonly changes: readonly Change[];
  /** Whether content is erased, which must then be overwritten on the disk. */
  readonly isErased: boolean;
}

/**
 * The changes that close events. Lost events are stored again, so that a late delivery is a duplicate.
 * @param retentionMs how long messages are kept, by default for ever
 */
function toClosing(found: readonly FoundEvent[], retentionMs: number | undefined): Closing {
  const changes: Change[] = [];
  let isErased = false;
  for (const { key, record, turn } of found) {
    if (record === undefined) {
      changes.push({ kind: "remove-member", index: indexes.openEvents, member: key });
    } else {
      const closed = toClosed(record);
      isErased ||= isGone(closed) && !isGone(record);
      const ttlMs = isGone(closed) ? answeredTtlMs : keptMs(record, retentionMs);
      changes.push(saveRecord(closed, ttlMs), ...unindexOpen(record.event));
      if (!isGone(closed)) changes.push(...indexAnswered(record.event, ttlMs));
    }
    const at = entryAt.turn(key);
    if (record !== undefined && isGone(record)) changes.push({ kind: "delete", at });
    else if (turn !== undefined) {
      const ttlMs = record === undefined ? answeredTtlMs : keptMs(record, retentionMs);
      changes.push({ kind: "keep", at, ttlMs });
    }
  }
  return { changes, isErased };
}

/** The changes that open a closed event again or keep an open one open. */
function openAgain(record: InboxRecord): Change[] {
  const { event } = record;
  return [saveRecord(record), ...indexOpen(event, orderOf(record)), ...unindexAnswered(event)];
}

/** A record with the turn that begins with it. */
interface Steered {
  readonly record: InboxRecord;
  readonly turn: TurnProgress | undefined;
}

/** Implements {@link Inbox.edit}. */
export function editEvent(
  { record, turn }: Partial<FoundEvent> = {},
  event: IncomingEvent,
  edit: NewEdit,
): Decision<Steered | "unchanged" | "unknown"> {
  if (record === undefined || after("edit", record) === undefined) return { result: "unknown" };
  if ((record.event.edit?.at ?? -Infinity) >= edit.at) return { result: "unchanged" };
  const { toAddress = (address) => address } = edit;
  const value = toEdited(record, turn, { event, edit });
  const isReopened = record.state === "answered" && turn !== undefined;
  const progress = isReopened ? { ...turn, address: toAddress(turn.address) } : turn;
  const changes = [...openAgain(value), ...(isReopened && progress ? saveProgress(progress) : [])];
  return { result: { record: value, turn: progress }, changes };
}

/** A turn that is open again, with the records of its events. */
interface ReopenedRecords {
  readonly records: readonly [InboxRecord, ...InboxRecord[]];
  readonly turn: TurnProgress;
  readonly redo: Redo | undefined;
}

/**
 * Implements {@link Inbox.reopen}. The result is `moved` if the turn answers other events than these.
 * @param found the turn's events, with its own first
 */
export function reopenTurn(
  [own, ...rest]: readonly FoundEvent[],
  kind: ReopenReason,
  replaces: ReplacedAnswer | undefined,
): Decision<ReopenedRecords | "open" | "gone" | "moved"> {
  const { record, turn } = own ?? {};
  if (record === undefined || isGone(record)) return { result: "gone" };
  const { key, address } = record.event;
  const progress = turn ?? { keys: [key], address, attempts: 1 };
  if (progress.keys.slice(1).some((other) => !rest.some((one) => one.key === other)))
    return { result: "moved" };
  // Events that were erased in the meantime are no longer part of it.
  const others = rest.flatMap((one) => (one.record === undefined || isGone(one.record) ? [] : [one.record]));
  const step = replaces === undefined ? "reopen" : "replace";
  // If one of them is being edited, the turn runs again because of the edit.
  const isOpen = [record, ...others].some((one) => after(step, one) === undefined);
  if (isOpen || (replaces !== undefined && replaces.attempts !== progress.attempts))
    return { result: "open" };
  const toOpen = (one: InboxRecord) =>
    toReopened(one, replaces?.edited?.find((event) => event.key === one.event.key) ?? one.event);
  const { model } = replaces ?? {};
  const redo: Redo | undefined = replaces && {
    kind,
    ...(model === undefined ? {} : { model }),
    since: replaces.attempts,
    requestedAt: systemClock.now(),
  };
  const first = { ...toOpen(record), ...(redo === undefined ? {} : { redo }) };
  const records: ReopenedRecords["records"] = [first, ...others.map(toOpen)];
  const again: TurnProgress = { ...progress, keys: records.map(({ event }) => event.key) };
  const isBegun = turn !== undefined || redo !== undefined;
  return {
    result: { records, turn: again, redo },
    changes: [...(isBegun ? saveProgress(again) : []), ...records.flatMap(openAgain)],
  };
}

/**
 * Implements {@link Inbox.withdraw}.
 * @param found the events `keys` and the others of their turns
 * @returns turns that now belong to other events
 */
export function withdrawEvents(
  found: readonly FoundEvent[],
  keys: readonly string[],
  keepsReplies: boolean,
): Decision<readonly TurnProgress[]> {
  const byKey = new Map(found.map((one) => [one.key, one]));
  const changes: Change[] = [];
  const moved: TurnProgress[] = [];
  for (const key of keys) {
    const { record, turn } = byKey.get(key) ?? {};
    const others = turn?.keys.filter((other) => !keys.includes(other)) ?? [];
    const open = others.filter((other) => {
      const one = byKey.get(other)?.record;
      return one !== undefined && !isOver(one);
    });
    const [first] = open;
    const isEnded = record === undefined || after("withdrawContent", record) === undefined;
    if (isEnded || turn === undefined || !keepsReplies || first !== undefined)
      changes.push(...eraseEvent(key, record));
    else changes.push(saveRecord(toWithdrawn(record)));
    // The progress moves to the first of the others, because nobody else would end their reply.
    if (turn === undefined || first === undefined) continue;
    if ((byKey.get(first)?.turn?.attempts ?? 0) < turn.attempts) moved.push({ ...turn, keys: open });
  }
  return { result: moved, changes: [...changes, ...moved.flatMap((turn) => saveProgress(turn))] };
}

export function eraseEvent(key: string, record: InboxRecord | undefined): Change[] {
  return [
    saveRecord(toErased(key, record), answeredTtlMs),
    { kind: "delete", at: entryAt.turn(key) },
    { kind: "remove-member", index: indexes.openEvents, member: key },
    ...(record === undefined ? [] : [...unindexOpen(record.event), ...unindexAnswered(record.event)]),
  ];
}
