import { toAsked } from "../core/command-input.ts";
import type { IndexChange, IndexMember, IndexPage } from "./backend.ts";
import { type KeyValueStore, type Change } from "./key-value.ts";
import { ParleyError } from "../core/errors.ts";
import {
  type StoredMessage,
  maxRecentChars,
  type ConversationsQuery,
  type ConversationSettings,
  type ConversationSummary,
} from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { toTitle } from "../support/text.ts";
import { type Slots, type Slot, toMessage } from "./slots.ts";
import { indexes, platformOf, entryAt } from "./keys.ts";

/** Lists a conversation for its platform as the most recently active one. `now` is in Unix ms. */
export function indexActivity(conversationId: string, now: number): IndexChange[] {
  const platform = platformOf(conversationId);
  return [
    {
      kind: "add-member",
      index: indexes.conversations(platform),
      member: conversationId,
      score: now,
    },
    { kind: "add-member", index: indexes.platforms, member: platform, score: 0 },
  ];
}

/** Lists a conversation among those in which an author has written. */
export function indexAuthor(conversationId: string, authorId: string): IndexChange[] {
  return addTo(indexes.conversationsOf(authorId), conversationId);
}

/** Removes a conversation from those in which an author has written. */
export function unindexAuthor(conversationId: string, authorId: string): IndexChange[] {
  return removeFrom(indexes.conversationsOf(authorId), conversationId);
}

/** Adds a conversation to the pinned ones, or removes it. */
export function indexPin(conversationId: string, isPinned: boolean): IndexChange[] {
  const index = indexes.pinned(platformOf(conversationId));
  return isPinned ? addTo(index, conversationId) : removeFrom(index, conversationId);
}

/** Moves a conversation from the places where it was to those where it is now. */
export function indexPlaces(
  conversationId: string,
  before: readonly string[],
  now: readonly string[],
): IndexChange[] {
  return [
    ...before
      .filter((place) => !now.includes(place))
      .flatMap((place) => removeFrom(indexes.conversationsWithin(place), conversationId)),
    ...now.flatMap((place) => addTo(indexes.conversationsWithin(place), conversationId)),
  ];
}

/** The changes that remove a conversation from every index of conversations. */
export async function unindexConversation(
  store: KeyValueStore,
  conversationId: string,
): Promise<readonly Change[]> {
  const listings = await readMembers(store, indexes.listings(conversationId));
  return [
    ...listings.flatMap((index) => removeFrom(index, conversationId)),
    {
      kind: "remove-member",
      index: indexes.conversations(platformOf(conversationId)),
      member: conversationId,
    },
  ];
}

/** The platforms that have or had conversations. */
export async function readPlatforms(store: KeyValueStore): Promise<readonly string[]> {
  return readMembers(store, indexes.platforms);
}

function addTo(index: string, conversationId: string): IndexChange[] {
  return [
    { kind: "add-member", index, member: conversationId, score: 0 },
    { kind: "add-member", index: indexes.listings(conversationId), member: index, score: 0 },
  ];
}

function removeFrom(index: string, conversationId: string): IndexChange[] {
  return [
    { kind: "remove-member", index, member: conversationId },
    { kind: "remove-member", index: indexes.listings(conversationId), member: index },
  ];
}

const pageSize = 500;

/**
 * Reads the members of a sorted index in pages, each of which goes on after the last member of the one
 * before. So none is left out if others are removed meanwhile. One whose score changes may come twice or, if
 * it moves towards the beginning, not at all.
 * @param after where to begin. Default: at the first
 */
export async function* inOrder(
  store: Pick<KeyValueStore, "range">,
  index: string,
  order: IndexPage["order"],
  after?: IndexMember,
): AsyncGenerator<IndexMember> {
  for (let last = after; ;) {
    const page = await store.range(index, { order, after: last, max: pageSize });
    yield* page;
    if (page.length < pageSize) return;
    last = page.at(-1);
  }
}

/** Reads all members of a sorted index, the lowest score first, each of them once. */
export async function readMembers(
  store: Pick<KeyValueStore, "range">,
  index: string,
): Promise<readonly string[]> {
  const members = new Set<string>();
  for await (const { member } of inOrder(store, index, "lowest-first")) members.add(member);
  return [...members];
}

/** The dependencies of lists. */
interface ListOptions {
  readonly store: KeyValueStore;
  readonly slots: Slots;
  readonly log: Log;
}

type Found = Omit<ConversationSummary, "title" | "within" | "isPinned">;

/** Implements {@link ConversationLists.list}. */
export async function listConversations(
  { store, slots, log }: ListOptions,
  prefix: string,
  query: ConversationsQuery,
): Promise<ConversationSummary[]> {
  const { max, without, isWanted } = query;
  const isListed = (id: string): boolean =>
    id.startsWith(prefix) && (without === undefined || !id.startsWith(without)) && isWanted?.(id) !== false;
  const platform = platformOf(prefix);
  const newest: Found[] = [];
  for await (const one of newestFirst(store, platform)) {
    if (newest.length === max) break;
    if (isListed(one.conversationId)) newest.push(one);
  }
  const known = new Set(newest.map(({ conversationId }) => conversationId));
  const pinned = (await readMembers(store, indexes.pinned(platform))).filter(
    (id) => isListed(id) && !known.has(id),
  );
  const older = await Promise.all(
    pinned.map(async (conversationId) => {
      const [last] = await slots.last(conversationId, 1, maxRecentChars);
      return { conversationId, updatedAt: last?.createdAt ?? 0 };
    }),
  );
  return summarize(store, log, [...newest, ...older.sort((a, b) => b.updatedAt - a.updatedAt)]);
}

/** A platform's conversations, the most recently active first, from the beginning or after one of them. */
export async function* newestFirst(
  store: KeyValueStore,
  platform: string,
  after?: Pick<ConversationSummary, "conversationId" | "updatedAt">,
): AsyncGenerator<Found> {
  const index = indexes.conversations(platform);
  const start = after === undefined ? undefined : { member: after.conversationId, score: after.updatedAt };
  for await (const { member, score } of inOrder(store, index, "highest-first", start))
    yield { conversationId: member, updatedAt: score };
}

/** Adds the name or title, or else the beginning of the first message, in three round trips altogether. */
async function summarize(
  store: KeyValueStore,
  log: Log,
  found: readonly Found[],
): Promise<ConversationSummary[]> {
  const ids = found.map(({ conversationId }) => conversationId);
  const [settings, heads, firsts] = await Promise.all([
    store.inspectMany<ConversationSettings>(
      "settings",
      ids.map((id) => entryAt.settings(id).key),
    ),
    store.hasMany(
      "head",
      ids.map((id) => entryAt.head(id).key),
    ),
    store.inspectMany<Slot>(
      "slot",
      ids.map((id) => entryAt.slot(id, 0).key),
    ),
  ]);
  const damaged = [...settings, ...firsts].filter((value) => value instanceof ParleyError).length;
  if (damaged > 0) log.error({ entries: damaged }, "titles of conversations are damaged");
  const readable = <T>(value: T | ParleyError) => (value instanceof ParleyError ? undefined : value);
  return found.flatMap((summary, index) => {
    // It has expired but is not swept yet.
    if (heads[index] !== true && settings[index] === undefined) return [];
    const { name, title, within, isPinned } = readable(settings[index]) ?? {};
    return [
      {
        ...summary,
        title: name ?? title ?? toConversationTitle(toMessage(readable(firsts[index]))),
        ...(within === undefined ? {} : { within }),
        ...(isPinned === true ? { isPinned } : {}),
      },
    ];
  });
}

/** The title of a conversation without one: the beginning of what was asked first, or a file's name. */
export function toConversationTitle(first: Pick<StoredMessage, "parts"> | undefined): string {
  for (const part of first?.parts ?? []) {
    const title = toTitle(
      "text" in part ? toAsked(part.text.slice(0, 1000)) : "name" in part ? part.name : "",
    );
    if (title !== "") return title;
  }
  return "Conversation";
}
