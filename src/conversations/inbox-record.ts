import type { CommandCall, EditedContent, IncomingEvent, IncomingMessage } from "../core/events.ts";
import type { InboxRecord } from "../core/inbox.ts";
import { systemClock } from "../support/clock.ts";
import type { IndexChange } from "./backend.ts";
import { type Change } from "./key-value.ts";
import { entryAt, indexes } from "./keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** How long the key of an erased event stays known, so that a late delivery is a duplicate. */
const erasedTtlMs = dayMs;

/** How long an event that is over stays known, so that it can be answered anew. */
const overTtlMs = 7 * dayMs;

/**
 * How many milliseconds an event that is over is kept: a week, and no longer than its message.
 * @param retentionMs how long messages are kept, by default for ever
 */
export function keptMs({ acceptedAt }: Pick<InboxRecord, "acceptedAt">, retentionMs?: number): number {
  if (retentionMs === undefined) return overTtlMs;
  return Math.min(overTtlMs, Math.max(erasedTtlMs, acceptedAt + retentionMs - systemClock.now()));
}

/** Whether something is to be done for an event. */
export function isOpen({ state }: Pick<InboxRecord, "state">): boolean {
  return state === "open" || state === "ending";
}

/** The event without its words, which are in the log. A call keeps its options. */
export function withoutWords(event: IncomingEvent): IncomingEvent {
  if (event.kind === "call") return event;
  const { repliesTo: _repliesTo, pictures: _pictures, isAside: _isAside, ...rest } = event;
  return { ...rest, text: "", attachments: [] } satisfies IncomingMessage;
}

/** An event that is over, whose words nobody needs any more. */
export function withoutAnyWords(event: IncomingEvent): IncomingEvent {
  if (event.kind === "message") return withoutWords(event);
  const { pictures: _pictures, problem: _problem, subject: _subject, editedTo: _editedTo, ...rest } = event;
  return { ...rest, options: {} };
}

/** The event whose text is in the log, and whose files could not be read yet. */
export function withoutText(event: IncomingEvent): IncomingEvent {
  return event.kind === "call" ? event : { ...event, text: "" };
}

/** Whether an edit is kept with a call. It then takes the place of the call's words when the call is over. */
export function isEditedCall(
  event: IncomingEvent,
): event is CommandCall & { readonly editedTo: EditedContent } {
  return event.kind === "call" && event.editedTo !== undefined;
}

/** The rest of an erased event: its key. */
function toErased(key: string, before: InboxRecord | undefined): InboxRecord {
  const event: IncomingMessage = {
    kind: "message",
    key,
    platform: before?.event.platform ?? "",
    conversationId: "",
    author: { id: "", name: "" },
    sentAt: 0,
    address: {},
    text: "",
    attachments: [],
  };
  return { event, acceptedAt: before?.acceptedAt ?? 0, state: "erased", version: (before?.version ?? 0) + 1 };
}

/** The change that stores a record under its key, by default for ever. `kept`: as long as it is there. */
export function saveRecord(record: InboxRecord, ttlMs?: number | "kept"): Change {
  return { kind: "set", at: entryAt.event(record.event.key), value: record, ttlMs };
}

/** The changes that erase an event. Its key stays a duplicate for a day. */
export function eraseRecord(key: string, before: InboxRecord | undefined): Change[] {
  return [
    saveRecord(toErased(key, before), erasedTtlMs),
    // The conversation of a damaged one is not known.
    ...(before === undefined
      ? [{ kind: "remove-member", index: indexes.openEvents, member: key } as const]
      : unlist(before.event)),
  ];
}

/** Keeps the records of the other events of a turn for so long, by default for ever. */
export function keepJoined({ event, turn }: InboxRecord, ttlMs: number | undefined): Change[] {
  const others = (turn?.keys ?? []).filter((key) => key !== event.key);
  return others.map((key) => ({ kind: "keep", at: entryAt.event(key), ttlMs }));
}

type ListedEvent = Pick<IncomingEvent, "key" | "conversationId">;

/** Lists an event among the open ones. */
export function list({ key, conversationId }: ListedEvent, score: number): IndexChange[] {
  return [indexes.openEvents, indexes.openEventsIn(conversationId)].map((index) => ({
    kind: "add-member",
    index,
    member: key,
    score,
  }));
}

/** Lists a new event as the last open one, even if the clocks of processes differ. */
export function listLast({ key, conversationId }: ListedEvent, score: number): IndexChange[] {
  return [indexes.openEvents, indexes.openEventsIn(conversationId)].map((index) => ({
    kind: "append-member",
    index,
    member: key,
    score,
  }));
}

/** Removes an event from the open ones. */
export function unlist({ key, conversationId }: ListedEvent): IndexChange[] {
  return [indexes.openEvents, indexes.openEventsIn(conversationId)].map((index) => ({
    kind: "remove-member",
    index,
    member: key,
  }));
}

/** Lists an event that is over and keeps its words for a Retry, so that it is found by those who erase. */
export function listRepeatable(key: string, ttlMs: number): IndexChange[] {
  const score = Math.ceil(systemClock.now() + ttlMs);
  return [{ kind: "add-member", index: indexes.repeatable, member: key, score }];
}

/** The position of an event among the open ones, which is finer than the clock. */
export function orderOf({ acceptedAt }: Pick<InboxRecord, "acceptedAt">): number {
  return acceptedAt * 1000;
}
