import type { ConversationSettings, ErasureReport, RemovedMessages, StoredMessage } from "../core/storage.ts";
import type { BlobStore } from "./blobs.ts";
import { forgetEvents } from "./inbox.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import type { KeyedQueue } from "../support/keyed-queue.ts";
import { entryAt, indexes, platformOf } from "./store-keys.ts";
import { blobHashes, outliving, platforms } from "./retention.ts";
import { createSlots, type Tombstone } from "./slots.ts";

/**
 * Removes what people want removed, for good: from the SQLite file and its log as well. Each can be run again
 * after a crash and finishes then. Turns that are still running may write anew; let them end first.
 */
export interface Erasure {
  /** Everything of a conversation: messages, settings, blobs, answered events. */
  deleteConversation(conversationId: string): Promise<ErasureReport>;
  /**
   * What one author said, in one conversation or (`undefined`) in all: with the blobs that nobody else's messages
   * show. Answers to others stay; a conversation in which nobody else spoke goes as a whole.
   */
  forgetAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /** What {@link Erasure.forgetAuthor} would remove. */
  countAuthor(conversationId: string | undefined, authorId: string): Promise<ErasureReport>;
  /**
   * Single messages, with the blobs that no other message shows. Ids that are not there yet are refused by `append`
   * from now on. Answers to them stay.
   */
  removeMessages(conversationId: string, removed: RemovedMessages): Promise<ErasureReport>;
}

export interface ErasureOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  /** The queue of the log's writers, by conversation. */
  readonly writers: KeyedQueue;
  readonly retentionMs?: number | undefined;
}

const batchSize = 200;
const nothing: ErasureReport = { messages: 0, blobs: 0, conversations: 0 };
/** The position of a message that was removed before it came. */
const nowhere = -1;
/** How long after its removal a message may still be delivered. */
const lateMs = 24 * 60 * 60 * 1000;

/** What a walk through a conversation has found. */
interface Look {
  readonly meant: readonly {
    readonly position: number;
    readonly message: StoredMessage;
    /** Id of the last message before it that stays. */
    readonly before: string | undefined;
  }[];
  readonly messages: number;
  readonly othersSpoke: boolean;
  /** What the messages that stay show. */
  readonly othersBlobs: ReadonlySet<string>;
  /** Blobs of what is meant and of nothing else. */
  readonly hashes: readonly string[];
  readonly isOpeningMeant: boolean;
}

export function createErasure({ store, blobs, writers, retentionMs }: ErasureOptions): Erasure {
  const slots = createSlots(store);

  const writeAll = async (changes: readonly Change[]) => {
    for (let at = 0; at < changes.length; at += batchSize)
      await store.write(changes.slice(at, at + batchSize));
  };
  const removeBlobs = async (conversationId: string, hashes: readonly string[]) => {
    await blobs.delete(conversationId, hashes);
    const index = indexes.blobs(conversationId);
    await writeAll(hashes.map((member) => ({ kind: "remove-member", index, member })));
  };

  const deleteWhole = async (conversationId: string): Promise<ErasureReport> => {
    const changes: Change[] = [];
    let messages = 0;
    for await (const { position, message, id } of slots.all(conversationId)) {
      if (message !== undefined) messages++;
      if (id !== undefined) changes.push({ kind: "delete", at: entryAt.messageId(conversationId, id) });
      changes.push({ kind: "delete", at: entryAt.slot(conversationId, position) });
    }
    const hashes = await blobHashes(store, conversationId);
    await removeBlobs(conversationId, hashes);
    await writeAll(changes);
    await forgetEvents(store, (event) => event.conversationId === conversationId);
    // Last: as long as these are there, a deletion that broke off can be found and finished.
    await store.write([
      { kind: "delete", at: entryAt.head(conversationId) },
      { kind: "delete", at: entryAt.settings(conversationId) },
      {
        kind: "remove-member",
        index: indexes.conversations(platformOf(conversationId)),
        member: conversationId,
      },
    ]);
    return { messages, blobs: hashes.length, conversations: messages > 0 ? 1 : 0 };
  };

  /** Goes through a conversation once, for the messages that are meant and what the others share with them. */
  const look = async (
    conversationId: string,
    isMeant: (message: StoredMessage) => boolean,
  ): Promise<Look> => {
    const meant: Look["meant"][number][] = [];
    const othersBlobs = new Set<string>();
    let before: string | undefined;
    let othersSpoke = false;
    let messages = 0;
    let first: string | undefined;
    for await (const { position, message } of slots.all(conversationId)) {
      if (message === undefined) continue;
      messages++;
      first ??= message.id;
      if (isMeant(message)) meant.push({ position, message, before });
      else {
        othersSpoke ||= message.role === "user";
        for (const hash of hashesOf(message)) othersBlobs.add(hash);
        before = message.id;
      }
    }
    const hashes = new Set(meant.flatMap(({ message }) => hashesOf(message)));
    return {
      meant,
      messages,
      othersSpoke,
      othersBlobs,
      hashes: [...hashes].filter((hash) => !othersBlobs.has(hash)),
      isOpeningMeant: meant[0] !== undefined && meant[0].message.id === first,
    };
  };

  /** Leaves a mark in each place. The ids stay known, so that a late delivery of the same event is not written anew. */
  const remove = async (
    conversationId: string,
    { meant, hashes, isOpeningMeant }: Look,
  ): Promise<ErasureReport> => {
    await removeBlobs(conversationId, hashes);
    // Before the messages: a removal that broke off is done again only as long as there is something to remove.
    await mendSettings(conversationId, meant, isOpeningMeant);
    await writeAll(
      meant.map(({ position, message }) => ({
        kind: "set",
        at: entryAt.slot(conversationId, position),
        value: { forgotten: true, id: message.id } satisfies Tombstone,
        ttlMs: retentionMs,
      })),
    );
    return { messages: meant.length, blobs: hashes.length, conversations: 0 };
  };

  const forgetIn = async (conversationId: string, authorId: string): Promise<ErasureReport> => {
    const found = await look(conversationId, ({ author }) => author?.id === authorId);
    if (found.meant.length === 0) return nothing;
    return found.othersSpoke ? remove(conversationId, found) : deleteWhole(conversationId);
  };

  const countIn = async (conversationId: string, authorId: string): Promise<ErasureReport> => {
    const { meant, hashes, othersSpoke, messages } = await look(
      conversationId,
      ({ author }) => author?.id === authorId,
    );
    if (meant.length === 0) return nothing;
    if (othersSpoke) return { messages: meant.length, blobs: hashes.length, conversations: 0 };
    return { messages, blobs: (await blobHashes(store, conversationId)).length, conversations: 1 };
  };

  const removeIn = async (conversationId: string, removed: RemovedMessages): Promise<ErasureReport> => {
    const { ids, shownAs = [], withLooseFiles = false } = removed;
    const [all, shown] = [new Set(ids), new Set(shownAs)];
    const found = await look(
      conversationId,
      (message) => all.has(message.id) || message.shownAs?.some((key) => shown.has(key)) === true,
    );
    const known = await store.hasMany(
      "id",
      ids.map((id) => entryAt.messageId(conversationId, id).key),
    );
    await writeAll(
      ids.flatMap((id, index): Change[] =>
        known[index] === true
          ? []
          : [{ kind: "set", at: entryAt.messageId(conversationId, id), value: nowhere, ttlMs: lateMs }],
      ),
    );
    const loose = withLooseFiles
      ? (await blobHashes(store, conversationId)).filter((hash) => !found.othersBlobs.has(hash))
      : [];
    const hashes = [...new Set([...found.hashes, ...loose])];
    if (found.meant.length === 0 && hashes.length === 0) return nothing;
    return remove(conversationId, { ...found, hashes });
  };

  /** A title is made of what was said first; a reset that points to what is gone would be no reset any more. */
  const mendSettings = async (
    conversationId: string,
    meant: Look["meant"],
    isOpeningMeant: boolean,
  ): Promise<void> => {
    const at = entryAt.settings(conversationId);
    const settings = await store.get<ConversationSettings>(at.space, at.key);
    if (settings === undefined) return;
    const { title, resetAfter, ...others } = settings;
    const reset = meant.find(({ message }) => message.id === resetAfter);
    const isTitleGone = isOpeningMeant && title !== undefined;
    if (!isTitleGone && reset === undefined) return;
    const after = reset === undefined ? resetAfter : reset.before;
    const value: ConversationSettings = {
      ...others,
      ...(isTitleGone || title === undefined ? {} : { title }),
      ...(after === undefined ? {} : { resetAfter: after }),
    };
    await store.write([{ kind: "set", at, value, ttlMs: outliving(retentionMs) }]);
  };

  const overAll = async (
    conversationId: string | undefined,
    work: (id: string) => Promise<ErasureReport>,
  ): Promise<ErasureReport> => {
    const ids = conversationId === undefined ? await allConversations(store) : [conversationId];
    let sum = nothing;
    for (const id of ids) sum = add(sum, await work(id));
    return sum;
  };

  return {
    async deleteConversation(conversationId) {
      const forgotten = await writers.run(conversationId, () => deleteWhole(conversationId));
      await store.backend.scrub();
      return forgotten;
    },
    async forgetAuthor(conversationId, authorId) {
      const sum = await overAll(conversationId, (id) => writers.run(id, () => forgetIn(id, authorId)));
      await forgetEvents(
        store,
        (event) =>
          event.author.id === authorId &&
          (conversationId === undefined || event.conversationId === conversationId),
      );
      await store.backend.scrub();
      return sum;
    },
    countAuthor: (conversationId, authorId) => overAll(conversationId, (id) => countIn(id, authorId)),
    async removeMessages(conversationId, removed) {
      const forgotten = await writers.run(conversationId, () => removeIn(conversationId, removed));
      await store.backend.scrub();
      return forgotten;
    },
  };
}

function add(one: ErasureReport, other: ErasureReport): ErasureReport {
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
      const rows = await store.backend.readIndex(indexes.conversations(platform), page);
      if (rows.length === 0) break;
      ids.push(...rows.map(({ member }) => member));
    }
  }
  return ids;
}
