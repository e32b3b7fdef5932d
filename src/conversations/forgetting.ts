import type { StoredMessage } from "../assistant/types.ts";
import type { BlobStore } from "./blobs.ts";
import { forgetEvents } from "./inbox.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import type { KeyedQueue } from "./keyed-queue.ts";
import { places, platformOf, rankings } from "./places.ts";
import { blobHashes, outliving, platforms } from "./retention.ts";
import { createSlots, type Tombstone } from "./slots.ts";

/** What was removed, to be said to who asked. */
interface Forgotten {
  readonly messages: number;
  readonly blobs: number;
  /** Conversations that are gone as a whole. */
  readonly conversations: number;
}

/**
 * Removes what people want removed, for good: from the SQLite file and its log as well. Each can be run again
 * after a crash and finishes then. Turns that are still running may write anew; let them end first.
 */
export interface Forgetting {
  /** Everything of a conversation: messages, settings, blobs, answered events. */
  deleteConversation(conversationId: string): Promise<Forgotten>;
  /**
   * What one author said, in one conversation or (`undefined`) in all: with the blobs that nobody else's messages
   * show. Answers to others stay; a conversation in which nobody else spoke goes as a whole.
   */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<Forgotten>;
}

export interface ForgettingOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  /** The queue of the log's writers, by conversation. */
  readonly writers: KeyedQueue;
  readonly retentionMs?: number | undefined;
}

const batchSize = 200;
const nothing: Forgotten = { messages: 0, blobs: 0, conversations: 0 };

export function createForgetting({ store, blobs, writers, retentionMs }: ForgettingOptions): Forgetting {
  const slots = createSlots(store);

  const writeAll = async (changes: readonly Change[]) => {
    for (let at = 0; at < changes.length; at += batchSize)
      await store.write(changes.slice(at, at + batchSize));
  };
  const removeBlobs = async (conversationId: string, hashes: readonly string[]) => {
    await blobs.delete(conversationId, hashes);
    const ranking = rankings.blobs(conversationId);
    await writeAll(hashes.map((member) => ({ kind: "unrank", ranking, member })));
  };

  const deleteWhole = async (conversationId: string): Promise<Forgotten> => {
    const changes: Change[] = [];
    let messages = 0;
    for await (const { position, message, id } of slots.all(conversationId)) {
      if (message !== undefined) messages++;
      if (id !== undefined) changes.push({ kind: "delete", at: places.messageId(conversationId, id) });
      changes.push({ kind: "delete", at: places.slot(conversationId, position) });
    }
    const hashes = await blobHashes(store, conversationId);
    await removeBlobs(conversationId, hashes);
    await writeAll(changes);
    await forgetEvents(store, (event) => event.conversationId === conversationId);
    // Last: as long as these are there, a deletion that broke off can be found and finished.
    await store.write([
      { kind: "delete", at: places.head(conversationId) },
      { kind: "delete", at: places.settings(conversationId) },
      {
        kind: "unrank",
        ranking: rankings.conversations(platformOf(conversationId)),
        member: conversationId,
      },
    ]);
    return { messages, blobs: hashes.length, conversations: messages > 0 ? 1 : 0 };
  };

  const forgetIn = async (conversationId: string, authorId: string): Promise<Forgotten> => {
    const theirs: { position: number; message: StoredMessage }[] = [];
    const othersBlobs = new Set<string>();
    let hasOthers = false;
    let isOpening = true;
    let openedIt = false;
    for await (const { position, message } of slots.all(conversationId)) {
      if (message === undefined) continue;
      if (message.author?.id === authorId) {
        theirs.push({ position, message });
        openedIt ||= isOpening;
      } else {
        hasOthers ||= message.role === "user";
        for (const hash of hashesOf(message)) othersBlobs.add(hash);
      }
      isOpening = false;
    }
    if (theirs.length === 0) return nothing;
    if (!hasOthers) return deleteWhole(conversationId);

    const gone = new Set(theirs.flatMap(({ message }) => hashesOf(message)));
    const hashes = [...gone].filter((hash) => !othersBlobs.has(hash));
    await removeBlobs(conversationId, hashes);
    await writeAll(
      theirs.map(({ position, message }) => ({
        kind: "set",
        at: places.slot(conversationId, position),
        // The id stays known, so that a late delivery of the same event is not written anew.
        value: { forgotten: true, id: message.id } satisfies Tombstone,
        ttlMs: retentionMs,
      })),
    );
    // A title is made of what was said first.
    if (openedIt) await dropTitle(conversationId);
    return { messages: theirs.length, blobs: hashes.length, conversations: 0 };
  };

  const dropTitle = async (conversationId: string) => {
    const at = places.settings(conversationId);
    const settings = await store.get<Record<string, unknown>>(at.space, at.key);
    if (settings?.["title"] === undefined) return;
    const { title: _, ...others } = settings;
    await store.write([{ kind: "set", at, value: others, ttlMs: outliving(retentionMs) }]);
  };

  return {
    async deleteConversation(conversationId) {
      const forgotten = await writers.run(conversationId, () => deleteWhole(conversationId));
      await store.backend.scrub();
      return forgotten;
    },
    async forgetAuthor(conversationId, authorId) {
      const ids = conversationId === undefined ? await allConversations(store) : [conversationId];
      let sum = nothing;
      for (const id of ids) sum = add(sum, await writers.run(id, () => forgetIn(id, authorId)));
      await forgetEvents(
        store,
        (event) =>
          event.author.id === authorId &&
          (conversationId === undefined || event.conversationId === conversationId),
      );
      await store.backend.scrub();
      return sum;
    },
  };
}

function add(one: Forgotten, other: Forgotten): Forgotten {
  return {
    messages: one.messages + other.messages,
    blobs: one.blobs + other.blobs,
    conversations: one.conversations + other.conversations,
  };
}

function hashesOf(message: StoredMessage): string[] {
  return message.parts.flatMap((part) => ("blob" in part ? [part.blob.hash] : []));
}

async function allConversations(store: KeyValueStore): Promise<readonly string[]> {
  const ids: string[] = [];
  for (const platform of await platforms(store)) {
    for (let offset = 0; ; offset += batchSize) {
      const page = { order: "lowest-first", offset, max: batchSize } as const;
      const rows = await store.backend.ranking(rankings.conversations(platform), page);
      if (rows.length === 0) break;
      ids.push(...rows.map(({ member }) => member));
    }
  }
  return ids;
}
