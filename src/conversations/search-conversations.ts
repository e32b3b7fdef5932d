import { setImmediate as turnOfLoop } from "node:timers/promises";
import type { ConversationSearch, FoundConversation, SearchPage } from "../core/conversation-lists.ts";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { ConversationSettings, MessagePart, StoredMessage } from "../core/storage.ts";
import { toConversationTitle } from "./conversation-title.ts";
import type { KeyValueStore } from "./key-value.ts";
import { newestFirst } from "./list-conversations.ts";
import { createTextSearch, type TextSearch } from "./search-text.ts";
import type { Head } from "./slots.ts";
import { entryAt, platformOf } from "./store-keys.ts";
import { type Slot, toMessage } from "./stored-message.ts";

/** So many conversations are read at once, with so many of the latest messages of each. */
const conversationsAtOnce = 3;
const latestMessages = 10;
/** So many earlier messages of one conversation are read at once: each may hold a million characters of files. */
const earlierMessages = 16;
/** Of each text: attached documents are longer, and folding them takes time. */
const maxSearchedChars = 200_000;

interface Candidate {
  readonly conversationId: string;
  readonly updatedAt: number;
}

/**
 * Reads the messages of a platform's conversations, the newest first, until enough is found or the time is up. Values
 * may be encrypted, so that no backend can search them. Damaged messages are left out.
 * @see {@link Conversations.search}
 */
export async function searchConversations(
  store: KeyValueStore,
  prefix: string,
  search: ConversationSearch,
  clock: Clock,
): Promise<SearchPage> {
  const text = createTextSearch(search.text);
  const found: FoundConversation[] = [];
  if (text.isEmpty) return { found };
  const endsAt = clock.monotonic() + search.maxMs;
  for await (const batch of batches(candidates(store, prefix, search), conversationsAtOnce)) {
    for (const one of await readBatch(store, batch)) {
      // Others get a turn between the conversations.
      await turnOfLoop();
      search.signal.throwIfAborted();
      const result = await searchOne(store, one, text);
      if (result !== undefined) found.push(result);
      if (found.length >= search.max || clock.monotonic() > endsAt) {
        return { found, next: toCursor(one.candidate) };
      }
    }
  }
  return { found };
}

/** A conversation with what is known before its messages are read. */
interface Searched {
  readonly candidate: Candidate;
  readonly next: number;
  readonly settings: ConversationSettings;
  /** The newest messages first, up to `from`. */
  readonly messages: readonly StoredMessage[];
  readonly from: number;
}

/** Heads, settings and the latest messages of several conversations: three round trips in all. */
async function readBatch(store: KeyValueStore, batch: readonly Candidate[]): Promise<Searched[]> {
  const keysOf = (at: (id: string) => { readonly key: string }) =>
    batch.map(({ conversationId }) => at(conversationId).key);
  const [heads, allSettings] = await Promise.all([
    store.inspectMany<Head>("head", keysOf(entryAt.head)),
    store.inspectMany<ConversationSettings>("settings", keysOf(entryAt.settings)),
  ]);
  const ends = batch.map((_, index) => readable(heads[index])?.next ?? 0);
  const keys = batch.flatMap(({ conversationId }, index) => {
    const end = ends[index] ?? 0;
    return range(Math.max(0, end - latestMessages), end).map(
      (position) => entryAt.slot(conversationId, position).key,
    );
  });
  const slots = await store.inspectMany<Slot>("slot", keys);
  let taken = 0;
  return batch.map((candidate, index) => {
    const next = ends[index] ?? 0;
    const from = Math.max(0, next - latestMessages);
    const own = slots.slice(taken, taken + next - from);
    taken += own.length;
    return {
      candidate,
      next,
      from,
      settings: readable(allSettings[index]) ?? {},
      messages: toMessages(own).toReversed(),
    };
  });
}

async function searchOne(
  store: KeyValueStore,
  { candidate, settings, messages, from }: Searched,
  text: TextSearch,
): Promise<FoundConversation | undefined> {
  const { conversationId } = candidate;
  let match = messages.map((message) => toMatch(message, text)).find((one) => one !== undefined);
  let first = from === 0 ? messages.at(-1) : undefined;
  for (let to = from; to > 0 && match === undefined; to -= earlierMessages) {
    await turnOfLoop();
    const keys = range(Math.max(0, to - earlierMessages), to).map(
      (position) => entryAt.slot(conversationId, position).key,
    );
    const older = toMessages(await store.inspectMany<Slot>("slot", keys)).toReversed();
    match = older.map((message) => toMatch(message, text)).find((one) => one !== undefined);
    first = older.at(-1);
  }
  const given = settings.name ?? settings.title;
  if (match === undefined && (given === undefined || !text.matches(given))) return undefined;
  // With a match in a later message the first one may not have been read.
  const start = entryAt.slot(conversationId, 0);
  const title = given ?? toConversationTitle(first ?? toMessage(readable(await readOne(store, start.key))));
  return { ...candidate, title, ...(match === undefined ? {} : { message: match }) };
}

async function readOne(store: KeyValueStore, key: string): Promise<Slot | ParleyError | undefined> {
  const [slot] = await store.inspectMany<Slot>("slot", [key]);
  return slot;
}

function toMatch(message: StoredMessage, text: TextSearch): FoundConversation["message"] {
  // People do not see it where the answer was made again.
  if (message.outcome === "failed") return undefined;
  const said = message.parts.map(wordsOf).join("\n");
  if (!text.matches(said)) return undefined;
  return { turnKey: message.turnKey, role: message.role, excerpt: text.excerpt(said) };
}

function wordsOf(part: MessagePart): string {
  switch (part.kind) {
    case "text":
      return part.text.slice(0, maxSearchedChars);
    case "voice":
    case "file":
      return `${part.name}\n${part.text.slice(0, maxSearchedChars)}`;
    case "image":
      return part.altText ?? part.name;
    case "unread":
      return part.name;
    case "image-link":
      return "";
  }
}

async function* candidates(
  store: KeyValueStore,
  prefix: string,
  { after, isWanted }: ConversationSearch,
): AsyncGenerator<Candidate> {
  const cursor = fromCursor(after);
  for await (const one of newestFirst(store, platformOf(prefix))) {
    if (!one.conversationId.startsWith(prefix) || isWanted?.(one.conversationId) === false) continue;
    // Those of the same millisecond may come twice, and none is left out.
    if (cursor !== undefined && one.updatedAt > cursor.updatedAt) continue;
    if (one.conversationId !== cursor?.conversationId) yield one;
  }
}

async function* batches<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

function toCursor({ updatedAt, conversationId }: Candidate): string {
  return `${updatedAt} ${conversationId}`;
}

function fromCursor(cursor: string | undefined): Candidate | undefined {
  const [, updatedAt, conversationId] = /^(\d{1,16}) (.+)$/s.exec(cursor ?? "") ?? [];
  return conversationId === undefined ? undefined : { conversationId, updatedAt: Number(updatedAt) };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => from + index);
}

function toMessages(slots: readonly (Slot | ParleyError | undefined)[]): StoredMessage[] {
  return slots.flatMap((slot) => toMessage(readable(slot)) ?? []);
}

function readable<T>(value: T | ParleyError | undefined): T | undefined {
  return value instanceof ParleyError ? undefined : value;
}
