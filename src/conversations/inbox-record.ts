import type { IncomingEvent, MessageEdit } from "../core/events.ts";
import type { InboxEntry, NewEdit, OpenRedo, StoppedAnswer, TurnProgress } from "../core/inbox.ts";
import { steadyClock } from "../support/steady-clock.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** How long an answered event stays known at least, so that a late delivery is a duplicate. */
export const answeredTtlMs = dayMs;

/** Of what is kept for ever: indexes need a time. */
const foreverMs = 100 * 365 * dayMs;

/** A turn's progress says where its reply is; it must outlast the longest outage that a start recovers from. */
export const turnTtlMs = 90 * dayMs;

/**
 * A claim separates processes that run a turn at the same moment: one that was paused learns from it, when it wakes,
 * that the turn has moved on. Redis' longest lease is far shorter. The same of edits.
 */
export const claimTtlMs = 60 * 60 * 1000;

/**
 * How long an answered event is kept, so that people can have it answered anew: as long as its message, in milliseconds.
 * @param retentionMs how long messages are kept; default for ever
 */
export function keptMs({ acceptedAt }: Pick<InboxRecord, "acceptedAt">, retentionMs?: number): number {
  if (retentionMs === undefined) return foreverMs;
  return Math.max(answeredTtlMs, acceptedAt + retentionMs - steadyClock.latest());
}

/** An accepted event as it is stored. */
export interface InboxRecord {
  readonly event: IncomingEvent;
  readonly acceptedAt: number;
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

/** An open event's record once it is answered. Of an edited call nothing is kept: it has the earlier words. */
export function toClosed(record: InboxRecord): InboxRecord {
  const { event, acceptedAt, isForgotten } = record;
  if (event.kind === "call" && event.edit !== undefined) return toErased(event.key, record);
  return { event, acceptedAt, isClosed: true, ...(isForgotten === true ? { isForgotten } : {}) };
}

/** Position of an event among the open events; finer than the clock. */
export function orderOf({ acceptedAt }: Pick<InboxRecord, "acceptedAt">): number {
  return acceptedAt * 1000;
}

/** What is left of an open event whose reply is still to be ended: where it is. */
export function toWithdrawn({ event, acceptedAt }: InboxRecord): InboxRecord {
  const { event: erased } = toErased(event.key, undefined);
  const { platform, conversationId, sentAt } = event;
  return { event: { ...erased, platform, conversationId, sentAt }, acceptedAt, isForgotten: true };
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
  return { event, acceptedAt: record?.acceptedAt ?? 0, isClosed: true, isForgotten: true };
}

/** An event after its author has edited it, open. */
export function toEdited(
  record: InboxRecord,
  turn: TurnProgress | undefined,
  { event, edit: { at, attemptsBefore } }: { readonly event: IncomingEvent; readonly edit: NewEdit },
): InboxRecord {
  const { event: _earlier, acceptedAt, isClosed, wasAnswered, ...steered } = record;
  // A call goes on as it was.
  const kept = event.kind === "call" ? steered : {};
  const edit: MessageEdit = {
    at,
    takenAt: steadyClock.latest(),
    count: editsOf(record) + 1,
    attemptsBefore: Math.max(attemptsBefore, turn?.attempts ?? 0),
  };
  return {
    event: { ...event, edit },
    acceptedAt,
    ...kept,
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
