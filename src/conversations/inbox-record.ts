import type { IncomingEvent, MessageEdit } from "../core/events.ts";
import type { EventState, InboxEntry, NewEdit, TurnProgress } from "../core/inbox.ts";
import { expiryTime, systemClock } from "../support/clock.ts";
import type { IndexChange } from "./backend.ts";
import { inOrder } from "./conversation-index.ts";
import { type KeyValueStore, writeBatches, type Change, indexes, entryAt } from "./key-value.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** The shortest time that an answered event stays known, so that a late delivery is a duplicate. */
export const answeredTtlMs = dayMs;

/** How long an answered event can be answered anew. */
const closedTtlMs = 7 * dayMs;

/** A turn's progress tells where its reply is, so it must outlast the longest outage before a recovery. */
const turnTtlMs = 90 * dayMs;

/**
 * How many milliseconds an answered event is kept: a week, and no longer than its message.
 * @param retentionMs how long messages are kept, by default for ever
 */
export function keptMs({ acceptedAt }: Pick<InboxRecord, "acceptedAt">, retentionMs?: number): number {
  if (retentionMs === undefined) return closedTtlMs;
  return Math.min(closedTtlMs, Math.max(answeredTtlMs, acceptedAt + retentionMs - systemClock.now()));
}

/**
 * An accepted event as it is stored. Each write expects the version that was read, so that of two processes,
 * two presses, an edit and a crash only one wins.
 */
export interface InboxRecord extends Omit<InboxEntry, "turn"> {
  /** It rises with each write. Default 0. */
  readonly version?: number;
  /** The latest attempt at a turn with this event that a process has claimed. Default 0. */
  readonly attempts?: number;
}

/**
 * What each step makes of an event, by the state that it finds. It changes nothing in a state that is not
 * listed. To withdraw an event erases it in any state, or its content alone where its reply must be ended.
 */
export const transitions = {
  claim: { open: "open", edited: "edited", stopping: "stopping", withdrawn: "withdrawn" },
  hear: { open: "open", edited: "edited", stopping: "stopping" },
  stop: { open: "stopping", edited: "stopping", stopping: "stopping" },
  edit: { open: "open", edited: "edited", stopping: "open", answered: "edited" },
  reopen: { open: "open", edited: "open", stopping: "open", answered: "open" },
  replace: { answered: "open" },
  close: {
    open: "answered",
    edited: "answered",
    stopping: "answered",
    answered: "answered",
    withdrawn: "erased",
    erased: "erased",
  },
  withdrawContent: { open: "withdrawn", edited: "withdrawn", stopping: "withdrawn", withdrawn: "withdrawn" },
} as const satisfies Record<string, Partial<Record<EventState, EventState>>>;

/** What a step makes of a record, or `undefined` where it changes nothing. */
export function after(step: keyof typeof transitions, { state }: Pick<InboxRecord, "state">) {
  return (transitions[step] as Partial<Record<EventState, EventState>>)[state];
}

/** Whether nothing is left to be done for an event. */
export function isOver({ state }: Pick<InboxRecord, "state">): boolean {
  return state === "answered" || state === "erased";
}

/** Whether the content of an event is erased. */
export function isGone({ state }: Pick<InboxRecord, "state">): boolean {
  return state === "withdrawn" || state === "erased";
}

/** The fields that every new form of a record takes from the one before. */
export function nextOf({ acceptedAt, version = 0, attempts }: InboxRecord) {
  return { acceptedAt, version: version + 1, ...(attempts === undefined ? {} : { attempts }) };
}

/** The record of an answered event. An edited call is erased, because it has the earlier words. */
export function toClosed(record: InboxRecord): InboxRecord {
  const { event } = record;
  if (event.kind === "call" && event.edit !== undefined) return toErased(event.key, record);
  return { event, ...nextOf(record), state: transitions.close[record.state] };
}

/** The record of an answered event whose turn is to run again. */
export function toReopened(record: InboxRecord, event = record.event): InboxRecord {
  return { event, ...nextOf(record), state: "open" };
}

/** The position of an event among the open events, which is finer than the clock. */
export function orderOf({ acceptedAt }: Pick<InboxRecord, "acceptedAt">): number {
  return acceptedAt * 1000;
}

/** The rest of an erased event whose reply must still be ended: the place of the reply. */
export function toWithdrawn(record: InboxRecord): InboxRecord {
  const { event: erased } = toErased(record.event.key, undefined);
  const { platform, conversationId, sentAt } = record.event;
  return { event: { ...erased, platform, conversationId, sentAt }, ...nextOf(record), state: "withdrawn" };
}

/** The rest of an erased event: its key, so that a late delivery is a duplicate. */
export function toErased(key: string, record: InboxRecord | undefined): InboxRecord {
  const event: IncomingEvent = {
    kind: "message",
    key,
    platform: record?.event.platform ?? "",
    conversationId: "",
    author: { id: "", name: "" },
    sentAt: record?.event.sentAt ?? 0,
    address: {},
    text: "",
    attachments: [],
  };
  const { acceptedAt = 0, version = 0 } = record ?? {};
  return { event, acceptedAt, version: version + 1, state: "erased" };
}

/** An open event after its author has edited it. */
export function toEdited(
  record: InboxRecord,
  turn: TurnProgress | undefined,
  { event, edit: { at, attemptsBefore } }: { readonly event: IncomingEvent; readonly edit: NewEdit },
): InboxRecord {
  const isCall = event.kind === "call";
  const edit: MessageEdit = {
    at,
    takenAt: systemClock.now(),
    count: editsOf(record) + 1,
    attemptsBefore: Math.max(attemptsBefore, turn?.attempts ?? 0),
  };
  return {
    // A call continues as it was, also where it is being stopped.
    ...(isCall ? record : {}),
    ...nextOf(record),
    event: { ...event, edit },
    state: (isCall && record.state === "stopping" ? undefined : after("edit", record)) ?? record.state,
  };
}

/** How often an event was edited. */
export function editsOf({ event }: InboxRecord): number {
  return event.edit?.count ?? 0;
}

/** A stored event in the form of the port. */
export function toEntry(record: InboxRecord, turn: TurnProgress | undefined): InboxEntry {
  const { version: _version, ...entry } = record;
  return { ...entry, ...(turn === undefined ? {} : { turn }) };
}

/** The change that stores a record under its key, by default for ever. */
export function saveRecord(record: InboxRecord, ttlMs?: number): Change {
  return { kind: "set", at: entryAt.event(record.event.key), value: record, ttlMs };
}

/** The changes that store a new event as the last open one. */
export function acceptEvent(record: InboxRecord): Change[] {
  return [saveRecord(record), ...indexAccepted(record.event, orderOf(record))];
}

/** The changes that store the progress of a turn under the key of its first event. */
export function saveProgress(turn: TurnProgress, ttlMs = turnTtlMs): Change[] {
  const [key] = turn.keys;
  return key === undefined ? [] : [{ kind: "set", at: entryAt.turn(key), value: turn, ttlMs }];
}

/** The parts of an event that the indexes of accepted events need. */
type IndexedEvent = Pick<IncomingEvent, "key" | "conversationId" | "author">;

/** Lists an event as open. `order` is its position among the open events. */
export function indexOpen({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "add-member", index: indexes.openEvents, member: key, score: order },
    { kind: "add-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Lists a new event as the last open one, even if the clocks of processes differ. */
function indexAccepted({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "append-member", index: indexes.openEvents, member: key, score: order },
    { kind: "append-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Removes an event from the open ones. */
export function unindexOpen({ key, conversationId }: IndexedEvent): IndexChange[] {
  return [
    { kind: "remove-member", index: indexes.openEvents, member: key },
    { kind: "remove-member", index: indexes.openEventsIn(conversationId), member: key },
  ];
}

/** Lists an event as answered until its entry expires, and drops expired ones from these indexes. */
export function indexAnswered(event: IndexedEvent, ttlMs: number): IndexChange[] {
  const now = expiryTime() ?? 0;
  const expires = systemClock.now() + ttlMs;
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    { kind: "trim-index", index, maxScore: now },
    { kind: "add-member", index, member: event.key, score: expires },
    { kind: "add-member", index: indexes.expiringIndexes, member: index, score: expires },
  ]);
}

/** Removes an event from the answered ones. */
export function unindexAnswered(event: IndexedEvent): IndexChange[] {
  return answeredIndexes(event).map((index) => ({ kind: "remove-member", index, member: event.key }));
}

function answeredIndexes({ conversationId, author }: IndexedEvent): string[] {
  return [indexes.answeredEventsIn(conversationId), indexes.answeredEventsBy(author.id)];
}

/** Removes expired events from the indexes of answered events. `now` is in Unix ms. */
export async function sweepEventIndexes(store: KeyValueStore, now: number): Promise<void> {
  const names: string[] = [];
  for await (const { member, score } of inOrder(store, indexes.expiringIndexes, "lowest-first")) {
    if (score > now) break;
    names.push(member);
  }
  if (names.length === 0) return;
  await writeBatches(
    store,
    names.map((index) => ({ kind: "trim-index", index, maxScore: now })),
  );
  // An index that is not empty is checked again when its next member expires.
  const left: IndexChange[] = [];
  for (const name of names) {
    const [next] = await store.readIndex(name, { order: "lowest-first", max: 1 });
    if (next !== undefined)
      left.push({
        kind: "add-member",
        index: indexes.expiringIndexes,
        member: name,
        score: Math.max(next.score, now + 1),
      });
  }
  await writeBatches(store, left);
  // This uses scores instead of names, because a newly answered event has raised its index's score.
  await store.write([{ kind: "trim-index", index: indexes.expiringIndexes, maxScore: now }]);
}
