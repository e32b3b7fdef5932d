import { ParleyError } from "../core/errors.ts";
import type { ConversationSettings } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { indexAuthor, indexPlaces, readPlatforms } from "./conversation-index.ts";
import { indexAnswered, indexOpen } from "./event-index.ts";
import { type InboxRecord, keptMs, orderOf } from "./inbox-record.ts";
import { readMembers } from "./index-members.ts";
import { type Change, type KeyValueStore, writeBatches } from "./key-value.ts";
import { createSlots } from "./slots.ts";
import { entryAt, indexes } from "./store-keys.ts";

const mark = { space: "meta", key: "indexes" } as const;

/** Raised when there is an index that a store in use lacks. */
const indexesVersion = 1;

const batchSize = 200;

/**
 * Fills the indexes by conversation, author and place in a store that an earlier version wrote; reads every entry
 * of it once. Can be interrupted, and run by several processes at once, also while they use the store.
 */
export async function fillIndexes(store: KeyValueStore, log: Log): Promise<void> {
  if (((await store.get<number>(mark.space, mark.key)) ?? 0) >= indexesVersion) return;
  const events = await fillEventIndexes(store, log);
  const conversations = await fillConversationIndexes(store);
  await store.write([{ kind: "set", at: mark, value: indexesVersion }]);
  if (events + conversations > 0) log.info({ events, conversations }, "store indexes created");
}

async function fillEventIndexes(store: KeyValueStore, log: Log): Promise<number> {
  const keys: string[] = [];
  for await (const key of store.backend.keys("inbox")) keys.push(key);
  for (let from = 0; from < keys.length; from += batchSize) {
    const records = await store.inspectMany<InboxRecord>("inbox", keys.slice(from, from + batchSize));
    const readable = records.flatMap((record) => (record instanceof ParleyError ? [] : [record]));
    const damaged = records.length - readable.length;
    if (damaged > 0) log.error({ entries: damaged }, "damaged inbox entries left out of the indexes");
    await writeBatches(
      store,
      readable.flatMap((record) => (record === undefined ? [] : indexRecord(record))),
    );
  }
  return keys.length;
}

function indexRecord(record: InboxRecord): Change[] {
  if (record.isForgotten === true && record.isClosed === true) return [];
  return record.isClosed === true
    ? indexAnswered(record.event, keptMs(record))
    : indexOpen(record.event, orderOf(record));
}

async function fillConversationIndexes(store: KeyValueStore): Promise<number> {
  let conversations = 0;
  for (const platform of await readPlatforms(store)) {
    for (const id of await readMembers(store, indexes.conversations(platform))) {
      conversations++;
      const { space, key } = entryAt.settings(id);
      const [settings] = await store.inspectMany<ConversationSettings>(space, [key]);
      const authors = new Set<string>();
      for await (const { message } of createSlots(store).all(id))
        if (message?.author !== undefined) authors.add(message.author.id);
      await writeBatches(store, [
        ...indexPlaces(id, [], settings instanceof ParleyError ? [] : (settings?.within ?? [])),
        ...[...authors].flatMap((authorId) => indexAuthor(id, authorId)),
      ]);
    }
  }
  return conversations;
}
