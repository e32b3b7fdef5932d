import type { IncomingEvent, MessageEdit } from "../core/events.ts";
import type { TurnProgress, InboxEntry, NewEdit, OpenRedo, StoppedAnswer } from "../core/inbox.ts";
import { steadyClock } from "../support/clock.ts";
import type { IndexChange } from "./backend.ts";
import { type KeyValueStore, writeBatches, type Change } from "./key-value.ts";
import { indexes, entryAt } from "./store-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** How long an answered event stays known at least, so that a late delivery is a duplicate. */
export const answeredTtlMs = dayMs;

/** Of what is kept for ever: indexes need a time. */
const foreverMs = 100 * 365 * dayMs;

/** A turn's progress says where its reply is; it must outlast the longest outage that a start recovers from. */
const turnTtlMs = 90 * dayMs;

/**
 * How long an answered event is kept, so that people can have it answered anew: as long as its message, in milliseconds.
 * @param retentionMs how long messages are kept; default for ever
 */
export function keptMs({ acceptedAt }: Pick<InboxRecord, "acceptedAt">, retentionMs?: number): number {
  if (retentionMs === undefined) return foreverMs;
  return Math.max(answeredTtlMs, acceptedAt + retentionMs - steadyClock.latest());
}

/**
 * An accepted event as it is stored. Each write of it expects the version that was read: that is how two processes, two
 * clicks, an edit and a crash never both win.
 */
export interface InboxRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
  /** Raised with each write. Default 0. */
  readonly version?: number;
  /** The latest attempt at a turn with this event that a process has claimed. Default 0. */
  readonly attempts?: number;
  readonly isClosed?: true;
  /** Its content was erased. Only the key is left of a closed one. */
  readonly isForgotten?: true;
  /** Of an open event that was answered before. */
  readonly redo?: OpenRedo;
  /** Of an open event whose turn was stopped: the person's name. */
  readonly stoppedBy?: string;
  /** The answer so far, of the first event of a stopped turn. */
  readonly stoppedAnswer?: StoppedAnswer;
  /** It had been answered when it was edited, and is open again. */
  readonly wasAnswered?: true;
}

/** What every form of a record keeps of the one before it. */
export function nextOf({ acceptedAt, version = 0, attempts }: InboxRecord) {
  return { acceptedAt, version: version + 1, ...(attempts === undefined ? {} : { attempts }) };
}

/** An open event's record once it is answered. An edited call is erased, because it has the earlier words. */
export function toClosed(record: InboxRecord): InboxRecord {
  const { event, isForgotten } = record;
  if (event.kind === "call" && event.edit !== undefined) return toErased(event.key, record);
  return { event, ...nextOf(record), isClosed: true, ...(isForgotten === true ? { isForgotten } : {}) };
}

/** An answered event's record once its turn is to run again. */
export function toReopened(record: InboxRecord, event = record.event): InboxRecord {
  return { event, ...nextOf(record) };
}

/** Position of an event among the open events; finer than the clock. */
export function orderOf({ acceptedAt }: Pick<InboxRecord, "acceptedAt">): number {
  return acceptedAt * 1000;
}

/** What is left of an open event whose reply is still to be ended: where it is. */
export function toWithdrawn(record: InboxRecord): InboxRecord {
  const { event: erased } = toErased(record.event.key, undefined);
  const { platform, conversationId, sentAt } = record.event;
  return { event: { ...erased, platform, conversationId, sentAt }, ...nextOf(record), isForgotten: true };
}

/** What is left of an erased event: its key, so that a late delivery is a duplicate. */
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
  return { event, acceptedAt, version: version + 1, isClosed: true, isForgotten: true };
}

/** An event after its author has edited it, open. */
export function toEdited(
  record: InboxRecord,
  turn: TurnProgress | undefined,
  { event, edit: { at, attemptsBefore } }: { readonly event: IncomingEvent; readonly edit: NewEdit },
): InboxRecord {
  const { isClosed, wasAnswered, ...steered } = record;
  const edit: MessageEdit = {
    at,
    takenAt: steadyClock.latest(),
    count: editsOf(record) + 1,
    attemptsBefore: Math.max(attemptsBefore, turn?.attempts ?? 0),
  };
  return {
    // A call goes on as it was.
    ...(event.kind === "call" ? steered : {}),
    ...nextOf(record),
    event: { ...event, edit },
    ...(isClosed === true || wasAnswered === true ? { wasAnswered: true } : {}),
  };
}

/** How often an event was edited. */
export function editsOf({ event }: InboxRecord): number {
  return event.edit?.count ?? 0;
}

/** A stored event as the port shows it. */
export function toEntry(
  { event, acceptedAt, isForgotten, isClosed, redo, stoppedBy, stoppedAnswer, wasAnswered }: InboxRecord,
  turn: TurnProgress | undefined,
): InboxEntry {
  return {
    event,
    acceptedAt,
    ...(turn === undefined ? {} : { turn }),
    ...(isForgotten === true ? { isWithdrawn: true } : {}),
    ...(isClosed === true ? { isClosed } : {}),
    ...(redo === undefined ? {} : { redo }),
    ...(stoppedBy === undefined ? {} : { stoppedBy }),
    ...(stoppedAnswer === undefined ? {} : { stoppedAnswer }),
    ...(wasAnswered === true ? { wasAnswered } : {}),
  };
}

/** What stores a new event as the last open one. */
export function acceptEvent(record: InboxRecord): Change[] {
  const { event } = record;
  return [
    { kind: "set", at: entryAt.event(event.key), value: record },
    ...indexAccepted(event, orderOf(record)),
  ];
}

/** What stores the progress of a turn, under the key of its first event. */
export function saveProgress(turn: TurnProgress, ttlMs = turnTtlMs): Change[] {
  const [key] = turn.keys;
  return key === undefined ? [] : [{ kind: "set", at: entryAt.turn(key), value: turn, ttlMs }];
}

/** An accepted event that this process has not answered yet, as it is stored. */
interface Unanswered {
  readonly record: InboxRecord;
  readonly turn?: TurnProgress | undefined;
}

/** Later its reply is sealed in any case, and another process may have answered it long ago. */
const maxAgeMs = 60 * 60 * 1000;

/**
 * What this process has accepted or runs, and has not answered: when the store loses it, it is written again, so that
 * nobody's message is dropped silently. Costs little memory beside the turns, which hold the same events.
 */
export function createAcceptedEvents(store: KeyValueStore) {
  const unanswered = new Map<string, Unanswered>();
  let storing: Promise<number> | undefined;

  const storeOne = async (key: string, { record, turn }: Unanswered): Promise<boolean> => {
    const changes = [...acceptEvent(record), ...(turn === undefined ? [] : saveProgress(turn))];
    return (await store.writeIf([entryAt.event(key)], changes)) === undefined;
  };

  const storeAll = async () => {
    let count = 0;
    // In the order of acceptance.
    for (const [key, each] of unanswered) {
      if (steadyClock.latest() - each.record.acceptedAt > maxAgeMs) unanswered.delete(key);
      else if (await storeOne(key, each)) count++;
    }
    return count;
  };

  return {
    add: (record: InboxRecord, turn?: TurnProgress) =>
      void unanswered.set(record.event.key, { record, turn }),
    has: (key: string) => unanswered.has(key),
    get: (key: string) => unanswered.get(key),
    keys: () => [...unanswered.keys()],
    setTurn(turn: TurnProgress) {
      const [key = ""] = turn.keys;
      const found = unanswered.get(key);
      if (found !== undefined) unanswered.set(key, { ...found, turn });
    },
    setRecord(record: InboxRecord) {
      const found = unanswered.get(record.event.key);
      if (found !== undefined) unanswered.set(record.event.key, { ...found, record });
    },
    delete: (keys: readonly string[]) => keys.forEach((key) => unanswered.delete(key)),
    /** Writes what the store lacks; resolves to how many events were missing. */
    storeAnew: () =>
      (storing ??= storeAll().finally(() => {
        storing = undefined;
      })),
  };
}

const pageSize = 500;

/** What the indexes of accepted events need to know of one. */
type IndexedEvent = Pick<IncomingEvent, "key" | "conversationId" | "author">;

/** Lists an event as open. `order`: its position among the open events. */
export function indexOpen({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "add-member", index: indexes.openEvents, member: key, score: order },
    { kind: "add-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Lists a new event as the last open one, whatever the clocks of the processes say. */
function indexAccepted({ key, conversationId }: IndexedEvent, order: number): IndexChange[] {
  return [
    { kind: "append-member", index: indexes.openEvents, member: key, score: order },
    { kind: "append-member", index: indexes.openEventsIn(conversationId), member: key, score: order },
  ];
}

/** Lists an event as open no more. */
export function unindexOpen({ key, conversationId }: IndexedEvent): IndexChange[] {
  return [
    { kind: "remove-member", index: indexes.openEvents, member: key },
    { kind: "remove-member", index: indexes.openEventsIn(conversationId), member: key },
  ];
}

/** Lists an event as answered until its entry expires, and drops from the same indexes what has expired before. */
export function indexAnswered(event: IndexedEvent, ttlMs: number): IndexChange[] {
  const now = steadyClock.earliest();
  const expires = steadyClock.latest() + ttlMs;
  // Others in them may expire within a day: what came before it.
  const sweptAt = Math.min(expires, steadyClock.latest() + answeredTtlMs);
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    { kind: "trim-index", index, maxScore: now },
    { kind: "add-member", index, member: event.key, score: expires },
    // A lower score never replaces a higher one.
    { kind: "remove-member", index: indexes.expiringIndexes, member: index },
    { kind: "add-member", index: indexes.expiringIndexes, member: index, score: sweptAt },
  ]);
}

/** Lists an answered event with an earlier expiry than before. */
export function expireAnswered(event: IndexedEvent, ttlMs: number): IndexChange[] {
  const expires = steadyClock.latest() + ttlMs;
  return answeredIndexes(event).flatMap((index): IndexChange[] => [
    // A lower score never replaces a higher one.
    { kind: "remove-member", index, member: event.key },
    { kind: "add-member", index, member: event.key, score: expires },
  ]);
}

/** Lists an event as answered no more. */
export function unindexAnswered(event: IndexedEvent): IndexChange[] {
  return answeredIndexes(event).map((index) => ({ kind: "remove-member", index, member: event.key }));
}

function answeredIndexes({ conversationId, author }: IndexedEvent): string[] {
  return [indexes.answeredEventsIn(conversationId), indexes.answeredEventsBy(author.id)];
}

/** Removes what has expired from the indexes of answered events. `now` in Unix ms. */
export async function sweepEventIndexes(store: KeyValueStore, now: number): Promise<void> {
  const names: string[] = [];
  for (let offset = 0; ; offset += pageSize) {
    const page = { order: "lowest-first", offset, max: pageSize } as const;
    const found = await store.readIndex(indexes.expiringIndexes, page);
    for (const { member, score } of found) if (score <= now) names.push(member);
    if (found.length < pageSize || (found.at(-1)?.score ?? 0) > now) break;
  }
  if (names.length === 0) return;
  await writeBatches(
    store,
    names.map((index) => ({ kind: "trim-index", index, maxScore: now })),
  );
  // An index that is not empty is looked at again when its next member expires.
  const left: IndexChange[] = [];
  for (const name of names) {
    const [next] = await store.readIndex(name, { order: "lowest-first", offset: 0, max: 1 });
    if (next !== undefined)
      left.push({
        kind: "add-member",
        index: indexes.expiringIndexes,
        member: name,
        score: Math.max(next.score, now + 1),
      });
  }
  await writeBatches(store, left);
  // By score, not by name: an event answered meanwhile has raised the score of its index.
  await store.write([{ kind: "trim-index", index: indexes.expiringIndexes, maxScore: now }]);
}
