import { maxRecentChars } from "../core/stored-text.ts";
import { ParleyError } from "../core/errors.ts";
import type { ConversationsQuery } from "../core/conversation-lists.ts";
import type { ConversationSettings, ConversationSummary } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { readPlatforms } from "./conversation-index.ts";
import { toConversationTitle } from "./conversation-title.ts";
import { readMembers } from "./index-members.ts";
import type { KeyValueStore } from "./key-value.ts";
import type { Slots } from "./slots.ts";
import { entryAt, indexes, platformOf } from "./store-keys.ts";
import { type Slot, toMessage } from "./stored-message.ts";

/** What lists work with. */
export interface ListOptions {
  readonly store: KeyValueStore;
  readonly slots: Slots;
  readonly log: Log;
}

/** So many members of an index are read at once. */
const pageSize = 200;

type Found = Omit<ConversationSummary, "title" | "within" | "isPinned">;

/** @see {@link Conversations.list} */
export async function listConversations(
  { store, slots, log }: ListOptions,
  prefix: string,
  query: ConversationsQuery,
): Promise<ConversationSummary[]> {
  const { max, without, isWanted } = query;
  const isListed = (id: string): boolean =>
    id.startsWith(prefix) && (without === undefined || !id.startsWith(without)) && isWanted?.(id) !== false;
  const platforms = prefix.includes(":") ? [platformOf(prefix)] : await readPlatforms(store);
  const found: Found[] = [];
  for (const platform of platforms) {
    let taken = 0;
    for await (const one of newestFirst(store, platform)) {
      if (taken === max) break;
      if (!isListed(one.conversationId)) continue;
      found.push(one);
      taken++;
    }
  }
  const newest = found.sort((a, b) => b.updatedAt - a.updatedAt).slice(0, max);
  const known = new Set(newest.map(({ conversationId }) => conversationId));
  const pinned = (await Promise.all(platforms.map((one) => readMembers(store, indexes.pinned(one)))))
    .flat()
    .filter((id) => isListed(id) && !known.has(id));
  const older = await Promise.all(
    pinned.map(async (conversationId) => {
      const [last] = await slots.last(conversationId, 1, maxRecentChars);
      return { conversationId, updatedAt: last?.createdAt ?? 0 };
    }),
  );
  return summarize(store, log, [...newest, ...older.sort((a, b) => b.updatedAt - a.updatedAt)]);
}

/** A platform's conversations, the most recently active first. */
export async function* newestFirst(store: KeyValueStore, platform: string): AsyncGenerator<Found> {
  const index = indexes.conversations(platform);
  for (let offset = 0; ; offset += pageSize) {
    const page = await store.backend.readIndex(index, { order: "highest-first", offset, max: pageSize });
    for (const { member, score } of page) yield { conversationId: member, updatedAt: score };
    if (page.length < pageSize) return;
  }
}

/** With the name or title that was set, else the beginning of the first message. Three round trips in all. */
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
    // Expired, and not swept yet.
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
