import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type {
  ConversationLists,
  ConversationSearch,
  ConversationSettings,
  FoundConversation,
  MessagePart,
  SearchPage,
  StoredMessage,
} from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { listConversations, newestFirst, toConversationTitle } from "./conversation-index.ts";
import { type KeyValueStore } from "./key-value.ts";
import { createSlots, type Slot, toMessage } from "./slots.ts";
import { createTextSearch, type TextSearch } from "./text-search.ts";
import { entryAt, platformOf, type Head } from "./keys.ts";

/** Finds conversations by what they are called, and by what was said in them. */
export function createConversationLists({
  store,
  log,
  clock = systemClock,
}: {
  readonly store: KeyValueStore;
  readonly log: Log;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
}): ConversationLists {
  const slots = createSlots(store);
  return {
    list: (prefix, query) => listConversations({ store, slots, log }, prefix, query),
    search: (prefix, search) => searchConversations(store, prefix, search, clock),
  };
}

/** How many conversations are searched at once. */
const conversationsAtOnce = 3;
/** How many messages of a conversation are read at once. Each may hold a million characters. */
const messagesAtOnce = 16;
/** For how many times a request's time one conversation may be searched. */
const longestShare = 4;
/** How many characters of a message are searched. Attached documents are longer. */
const maxSearchedChars = 200_000;

interface Candidate {
  readonly conversationId: string;
  readonly updatedAt: number;
}

/**
 * Reads the messages of a platform's conversations, newest first, until enough is found or the time is up.
 * Values may be encrypted, so no backend can search them. Damaged messages are left out.
 * @see {@link ConversationLists.search}
 */
async function searchConversations(
  store: KeyValueStore,
  prefix: string,
  search: ConversationSearch,
  clock: Clock,
): Promise<SearchPage> {
  const text = createTextSearch(search.text);
  const found: FoundConversation[] = [];
  if (text.isEmpty) return { found };
  const endsAt = clock.monotonic() + search.maxMs;
  const searchEach = (one: Candidate) => {
    const startedAt = clock.monotonic();
    const isOver = (): boolean =>
      search.signal.aborted || clock.monotonic() > startedAt + longestShare * search.maxMs;
    return searchOne(store, one, { text, isOver });
  };
  for await (const batch of batches(candidates(store, prefix, search), conversationsAtOnce)) {
    const each = await Promise.all(batch.map(searchEach));
    search.signal.throwIfAborted();
    for (const one of each) {
      if (one === undefined) continue;
      found.push(one);
      if (found.length >= search.max) return { found, next: toCursor(one) };
    }
    const last = batch.at(-1);
    if (last !== undefined && clock.monotonic() > endsAt) return { found, next: toCursor(last) };
  }
  return { found };
}

/**
 * Looks for the latest message with the words, and else at the title. What is not read when the time is up
 * counts as not found, so that the search goes on behind a conversation of any length.
 */
async function searchOne(
  store: KeyValueStore,
  candidate: Candidate,
  { text, isOver }: { readonly text: TextSearch; readonly isOver: () => boolean },
): Promise<FoundConversation | undefined> {
  const { conversationId } = candidate;
  const readSlots = async (from: number, to: number) => {
    const keys = range(from, to).map((position) => entryAt.slot(conversationId, position).key);
    return toMessages(await store.inspectMany<Slot>("slot", keys));
  };
  const [[head], [found]] = await Promise.all([
    store.inspectMany<Head>("head", [entryAt.head(conversationId).key]),
    store.inspectMany<ConversationSettings>("settings", [entryAt.settings(conversationId).key]),
  ]);
  const settings = readable(found) ?? {};
  let match: FoundConversation["message"];
  for (let to = readable(head)?.next ?? 0; to > 0 && match === undefined && !isOver(); to -= messagesAtOnce) {
    for (const message of (await readSlots(Math.max(0, to - messagesAtOnce), to)).toReversed()) {
      match = await toMatch(message, text);
      if (match !== undefined || isOver()) break;
    }
  }
  const given = settings.name ?? settings.title;
  if (match === undefined && (given === undefined || (await text.find(given)) === undefined))
    return undefined;
  const title = given ?? toConversationTitle((await readSlots(0, 1))[0]);
  return { ...candidate, title, ...(match === undefined ? {} : { message: match }) };
}

async function toMatch(message: StoredMessage, text: TextSearch): Promise<FoundConversation["message"]> {
  // People do not see it if the answer was made again.
  if (message.outcome === "failed") return undefined;
  const excerpt = await text.find(message.parts.map(wordsOf).join("\n").slice(0, maxSearchedChars));
  return excerpt === undefined ? undefined : { turnKey: message.turnKey, role: message.role, excerpt };
}

function wordsOf(part: MessagePart): string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "voice":
    case "file":
      return `${part.name}\n${part.text}`;
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
  for await (const one of newestFirst(store, platformOf(prefix), fromCursor(after)))
    if (one.conversationId.startsWith(prefix) && isWanted?.(one.conversationId) !== false) yield one;
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
