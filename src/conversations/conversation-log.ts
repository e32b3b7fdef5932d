import { createHash } from "node:crypto";
import {
  maxRecentChars,
  type Conversations,
  type ConversationSettings,
  type NotedWithMessage,
  type StoredMessage,
  maxRatings,
  type RatingOutcome,
  type ConversationSearch,
  type FoundConversation,
  type SearchPage,
  type MessagePart,
} from "../core/storage.ts";
import { raterOf } from "../core/raters.ts";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import type { KeyedQueue } from "../support/queues.ts";
import type { BlobStore } from "./blobs.ts";
import {
  indexActivity,
  indexAuthor,
  indexPin,
  indexPlaces,
  readMembers,
  listConversations,
  toConversationTitle,
  newestFirst,
} from "./conversation-index.ts";
import { type KeyValueStore, entryAt, indexes, platformOf } from "./key-value.ts";
import { outliving } from "./retention.ts";
import { createTextSearch, type TextSearch } from "./text-search.ts";
import { createRollingSummary } from "./rolling-summary.ts";
import { createLogPlanner, type WritePlan } from "./log-plan.ts";
import { createSlots, type Head, type Slot, toMessage } from "./slots.ts";
import { systemClock } from "../support/clock.ts";

/** The options of the log. */
interface ConversationLogOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly log: Log;
  /** Runs this process's writes of a conversation one by one, so that they do not compete for a slot. */
  readonly writers: KeyedQueue;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  /** How many milliseconds a message is kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

/** More lost races for a slot in a row are a fault, not contention. */
const maxConflicts = 10_000;

/**
 * The log of every conversation over a key-value store. Each message is an entry (a slot), which is set if
 * absent together with its id, the new end and the indexes. Several processes can write without losses, and
 * an append always costs the same.
 */
export function createConversationLog(options: ConversationLogOptions): Conversations {
  const { store, blobs, log, writers, clock = systemClock, retentionMs } = options;
  const outlivingMs = outliving(retentionMs);
  const planLog = createLogPlanner(store, retentionMs);
  const slots = createSlots(store);

  const append = async (conversationId: string, message: StoredMessage, noted: NotedWithMessage = {}) => {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const plan = await planLog(conversationId, [{ message }], { noted, conflicts });
      if (plan.refused.length > 0) return "duplicate";
      if ((await store.writeIf(plan.conditions, plan.changes)) === undefined) return "appended";
    }
    throw new ParleyError("store-unavailable", "other processes kept taking the end of the conversation");
  };

  const hadMessages = async (conversationId: string): Promise<boolean> => {
    const [hasHead] = await store.hasMany("head", [entryAt.head(conversationId).key]);
    return hasHead === true;
  };

  const look = async (conversationId: string) => {
    const [{ value: before, unchanged }, hasHead] = await Promise.all([
      store.observe<ConversationSettings>(entryAt.settings(conversationId)),
      hadMessages(conversationId),
    ]);
    return { before, unchanged, isNew: before === undefined && !hasHead };
  };

  /** What was said before a reset is not answered anew. */
  const planWithoutLast = async (conversationId: string): Promise<WritePlan> => {
    const at = entryAt.head(conversationId);
    const { value: head, unchanged } = await store.observe<Head>(at);
    if (head?.last === undefined) return { conditions: [], changes: [] };
    const { last: _last, ...value } = head;
    return { conditions: [unchanged], changes: [{ kind: "set", at, value, ttlMs: "kept" }] };
  };

  const saveSettings: Conversations["saveSettings"] = (conversationId, change, resolves) =>
    writers.run(conversationId, async () => {
      for (;;) {
        const { before, unchanged, isNew } = await look(conversationId);
        const settings = typeof change === "function" ? change(before ?? {}) : change;
        if (settings === undefined) return;
        const merged = { ...before, ...settings };
        const isReset = settings.resetAfter !== undefined;
        const reset = isReset ? await planWithoutLast(conversationId) : { conditions: [], changes: [] };
        const failed = await store.writeIf(
          [unchanged, ...reset.conditions],
          [
            { kind: "set", at: entryAt.settings(conversationId), value: merged, ttlMs: outlivingMs },
            ...(isNew ? indexActivity(conversationId, systemClock.now()) : []),
            ...indexPlaces(conversationId, before?.within ?? [], merged.within ?? []),
            // Nothing from before a reset is sent to a model.
            ...(isReset ? [{ kind: "delete", at: entryAt.summary(conversationId) } as const] : []),
            ...reset.changes,
            ...(before?.isPinned === merged.isPinned
              ? []
              : indexPin(conversationId, merged.isPinned === true)),
          ],
          resolves,
        );
        if (failed === undefined) return;
      }
    });

  return {
    async append(conversationId, message, noted) {
      return writers.run(conversationId, () => append(conversationId, message, noted));
    },
    ...createRollingSummary({ store, retentionMs }),
    async recent(conversationId, { maxMessages, maxChars = maxRecentChars }) {
      return slots.last(conversationId, maxMessages, maxChars);
    },
    opening: (conversationId) => slots.at(conversationId, 0),
    async find(conversationId, messageId) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      return position === undefined ? undefined : slots.at(conversationId, position);
    },
    async rate(conversationId, messageId, { personId, rating }) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      if (position === undefined || position < 0) return "gone";
      const rater = raterOf(messageId, personId);
      // This comes before the rating, which must be found when the person is forgotten.
      await store.write(indexAuthor(conversationId, personId), "soon");
      let outcome: RatingOutcome = "gone";
      await store.update<Slot>(entryAt.slot(conversationId, position), (slot) => {
        const message = toMessage(slot);
        outcome = "gone";
        if (message?.id !== messageId || message.role !== "assistant") return undefined;
        const { ratings = {} } = message;
        const isFull = ratings[rater] === undefined && Object.keys(ratings).length >= maxRatings;
        outcome = ratings[rater] === rating || isFull ? "unchanged" : "rated";
        return outcome === "rated" ? { ...message, ratings: { ...ratings, [rater]: rating } } : undefined;
      });
      return outcome;
    },
    async exists(conversationId) {
      return !(await look(conversationId)).isNew;
    },
    hadMessages,
    async existing(conversationIds) {
      const keysOf = (at: (id: string) => { readonly key: string }) =>
        conversationIds.map((id) => at(id).key);
      const [settings, heads] = await Promise.all([
        store.hasMany("settings", keysOf(entryAt.settings)),
        store.hasMany("head", keysOf(entryAt.head)),
      ]);
      return conversationIds.filter((_, index) => settings[index] === true || heads[index] === true);
    },
    async settings(conversationId) {
      const { space, key } = entryAt.settings(conversationId);
      return (await store.get<ConversationSettings>(space, key)) ?? {};
    },
    saveSettings,
    list: (prefix, query) => listConversations({ store, slots, log }, prefix, query),
    search: (prefix, search) => searchConversations(store, prefix, search, clock),
    listWithin: (place) => readMembers(store, indexes.conversationsWithin(place)),
    async putBlob(conversationId, bytes, mediaType) {
      const hash = createHash("sha256").update(bytes).digest("hex");
      const index = indexes.blobs(conversationId);
      await store.write([{ kind: "add-member", index, member: hash, score: systemClock.now() }]);
      await blobs.put(conversationId, hash, { bytes, mediaType }, outlivingMs);
      return { hash, mediaType, sizeBytes: bytes.byteLength };
    },
    async getBlob(conversationId, hash) {
      return blobs.get(conversationId, hash);
    },
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
 * @see {@link Conversations.search}
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
