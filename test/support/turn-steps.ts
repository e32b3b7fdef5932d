import type { Store } from "../../src/conversations/open-store.ts";
import {
  storedIn,
  type CommandCall,
  type IncomingEvent,
  type IncomingMessage,
} from "../../src/core/events.ts";
import type {
  Attempt,
  Change,
  Inbox,
  InboxRecord,
  ResultKind,
  RunWrite,
  TurnEnd,
} from "../../src/core/inbox.ts";
import { messageIds } from "../../src/core/message-ids.ts";
import type { StoredMessage } from "../../src/core/storage.ts";
import { eventOf, messageOf } from "./store-samples.ts";

// What a process does with an accepted event, one write at a time, for tests of the store.

/** Makes a call of `/ask` by Ann. */
export function callOf(key: string, conversationId = "test:inbox", prompt = `text of ${key}`): CommandCall {
  const { text: _text, attachments: _attachments, ...base } = eventOf(key, conversationId);
  return {
    ...base,
    kind: "call",
    name: "ask",
    options: { prompt },
    inConversation: true,
    isPrivate: false,
  };
}

/** The words of an event that are in its record. */
export function wordsOf(event: IncomingEvent): string {
  if (event.kind === "message") return event.text;
  const { prompt } = event.options;
  return typeof prompt === "string" ? prompt : "";
}

/** Makes the question of an event as it is stored. */
export function questionOf(event: IncomingEvent, text?: string): StoredMessage {
  const words = wordsOf(event);
  const { author, edit } = event;
  const stored = messageOf(messageIds.user(event.key), text ?? words);
  const editedAt = edit === undefined ? {} : { editedAt: edit.at };
  return { ...stored, turnKey: event.key, author, ...editedAt };
}

/** Makes the answer of a turn's attempt. */
export function answerOf(key: string, attempt: number, text: string): StoredMessage {
  const { author: _author, ...message } = messageOf(messageIds.answer(key), text);
  return { ...message, role: "assistant", turnKey: key, attempt, outcome: "complete" };
}

/** Begins a turn of accepted events as they are, with their questions unless they have files to be read. */
export async function beginTurn(
  inbox: Inbox,
  keys: readonly string[],
  { isAsked = true }: { readonly isAsked?: boolean } = {},
): Promise<Attempt> {
  const records = await inbox.read(keys);
  const isFirst = records[0]?.turn === undefined;
  const messages = records.map(({ event }) => questionOf(event));
  const begun = await inbox.begin(records, isFirst && isAsked ? { messages } : undefined);
  if (begun === undefined) throw new Error("the turn could not be begun");
  const { event, turn } = begun.record;
  return { key: event.key, attempt: turn.attempt, conversationId: storedIn(event) };
}

/** Makes the end of a turn, which is stored with an answer if there are words. */
export function endOf(
  { key, attempt }: Pick<Attempt, "key" | "attempt">,
  text?: string,
  {
    kind = "answer",
    ...rest
  }: Partial<Omit<Extract<RunWrite, { kind: "end" }>, "kind" | "end">> & {
    readonly kind?: ResultKind;
    readonly end?: Partial<TurnEnd>;
  } = {},
): RunWrite {
  const answer = text === undefined ? {} : { answer: answerOf(key, attempt, text) };
  const end: TurnEnd = { kind, at: Date.now(), isStored: true, ...rest.end };
  return { questions: [], toEdited: (question) => question, ...answer, ...rest, kind: "end", end };
}

/** Accepts events and answers them as one turn, until its record is closed. */
export async function answerTurn(
  inbox: Inbox,
  events: readonly IncomingEvent[],
  text = "the answer",
): Promise<Attempt> {
  for (const event of events) await inbox.accept(event);
  const keys = events.map(({ key }) => key);
  const attempt = await beginTurn(inbox, keys);
  await inbox.write(attempt, endOf(attempt, text));
  await inbox.write(attempt, { kind: "close" });
  return attempt;
}

/** An edit of a message, or of the message of a call, made at a time by the platform's clock. */
export function editTo(of: string, text: string, at = 5000): Extract<Change, { kind: "edit" }> {
  return {
    kind: "edit",
    of,
    at,
    isAsked: true,
    toEvent: (event) => (event.kind === "call" ? { ...event, editedTo: { text } } : { ...event, text }),
    toQuestion: (question) => ({ ...question, parts: [{ kind: "text", text }] }),
    toAddress: (address) => address,
  };
}

export const deletionOf = (of: string): Change => ({ kind: "delete", of });

export const stopOf = (of: string, at = 9000): Change => ({ kind: "stop", of, by: "Ada", at });

/** A press of "Regenerate" below the answer of an attempt. */
export function againOf(
  of: string,
  how: Partial<Extract<Change, { kind: "again" }>> = {},
): Extract<Change, { kind: "again" }> {
  return { kind: "again", of, reason: "regenerate", isLastOnly: true, ...how };
}

/** The keys of open events, in order. */
export async function openKeys(inbox: Inbox, conversationId?: string): Promise<readonly string[]> {
  const open = conversationId === undefined ? await inbox.open() : await inbox.openIn(conversationId);
  return open.map(({ event }) => event.key);
}

/** A file that cannot be read until its turn runs. */
export const unreadFile = { id: "f1", name: "notes.txt", source: {} };

/** What is done and seen in one conversation of the store that is open then. */
export function createTurnSteps(id: string, store: () => Pick<Store, "inbox" | "conversations">) {
  const accept = async (...keys: string[]): Promise<void> => {
    for (const key of keys) await store().inbox.accept(eventOf(key, id));
  };
  const wordsIn = ({ parts }: Pick<StoredMessage, "parts">): string =>
    parts.map((part) => ("text" in part ? part.text : part.kind)).join(" ");
  return {
    accept,
    wordsIn,
    withFile: (key: string, text: string): IncomingMessage => ({
      ...eventOf(key, id),
      text,
      attachments: [unreadFile],
    }),
    recordOf: async (key: string): Promise<InboxRecord | undefined> => (await store().inbox.read([key]))[0],
    /** The words of each message in the log. */
    logOf: async (): Promise<readonly string[]> =>
      (await store().conversations.recent(id, { maxMessages: 99 })).map(wordsIn),
    begin: async (...keys: string[]): Promise<Attempt> => {
      await accept(...keys);
      return await beginTurn(store().inbox, keys);
    },
    write: async (attempt: Attempt, what: RunWrite): Promise<boolean> =>
      (await store().inbox.write(attempt, what)).isWritten,
  };
}
