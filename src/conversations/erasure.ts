import { isDeepStrictEqual } from "node:util";
import { ParleyError } from "../core/errors.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { InboxRecord } from "../core/inbox.ts";
import type { LayerValues } from "../core/layered-settings.ts";
import { raterOf, ratingBy } from "../core/raters.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type {
  StoredMessage,
  Archive,
  ConversationSettings,
  ErasureReport,
  RemovedMessages,
} from "../core/storage.ts";
import type { KeyedQueue } from "../support/queues.ts";
import type { BlobStore } from "./blobs.ts";
import { indexAuthor, unindexAuthor, unindexConversation, readMembers } from "./conversation-index.ts";
import { eraseRecord } from "./inbox-record.ts";
import {
  batchSize,
  type Change,
  type KeyValueStore,
  type Observed,
  writeBatches,
  entryAt,
  indexes,
} from "./key-value.ts";
import { toLast } from "./log-plan.ts";
import { blobHashes, outliving } from "./retention.ts";
import { replaceWithoutSummary, writeWithoutSummary } from "./rolling-summary.ts";
import { type Slots, createSlots, type Head, type Slot, type Tombstone } from "./slots.ts";

/**
 * The erasing part of {@link Archive}. Erased data is removed from the service's files too. Each method can
 * be repeated after a crash and completes the work. Running turns may write again, so let them end first.
 */
export interface Erasure extends Omit<Archive, "exportConversation"> {
  /** Erases the files that only this message shows, apart from those that it keeps. */
  readonly eraseFilesOf: (
    conversationId: string,
    message: StoredMessage,
    kept?: StoredMessage,
  ) => Promise<void>;
}

/** The options of the erasure. */
interface ErasureOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  /** The queue for the log's writes by conversation. */
  readonly writers: KeyedQueue;
  /** Erases a person's usage together with all other data of the person. */
  readonly spending: Pick<SpendingLedger, "forgetPerson">;
  /** How many milliseconds a message is kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

const nothing: ErasureReport = { messages: 0, blobs: 0, conversations: 0, settings: 0, ratings: 0 };
/** The position of a message that was removed before it was stored. */
const noPosition = -1;
/** How long after its removal a message may still be delivered. */
const lateMs = 24 * 60 * 60 * 1000;

/** Creates {@link Erasure}. */
export function createErasure(options: ErasureOptions): Erasure {
  const { store, blobs, writers, spending, retentionMs } = options;
  const slots = createSlots(store);

  const eraseBlobs = async (conversationId: string, hashes: readonly string[]) => {
    await blobs.delete(conversationId, hashes);
    const index = indexes.blobs(conversationId);
    await writeBatches(
      store,
      hashes.map((member) => ({ kind: "remove-member", index, member })),
    );
  };

  /** How many of these blobs have not expired. */
  const countBlobs = async (conversationId: string, hashes: readonly string[]): Promise<number> => {
    const keys = hashes.map((hash) => entryAt.blob(conversationId, hash).key);
    return (await store.hasMany("blob", keys)).filter(Boolean).length;
  };

  /**
   * Erases the records of events that are over, whose keys stay duplicates. Open ones stay, because the
   * request to erase is one of them.
   */
  const eraseRecords = async (keys: readonly string[]): Promise<void> => {
    for (let from = 0; from < keys.length; from += batchSize) {
      const batch = keys.slice(from, from + batchSize);
      for (;;) {
        const found = (await store.observeAll(batch.map(entryAt.event))) as readonly Observed<InboxRecord>[];
        const over = found.flatMap(({ value, damage, unchanged }, index) => {
          const isOver = value?.state === "over" || (value?.state === "joined" && value.isInLog === true);
          return isOver || damage !== undefined ? [{ key: batch[index]!, value, unchanged }] : [];
        });
        const failed = await store.writeIf(
          over.map(({ unchanged }) => unchanged),
          over.flatMap(({ key, value }) => eraseRecord(key, value)),
        );
        if (failed === undefined) break;
      }
    }
  };

  /** Erases events that are over, of which no log knows, and which could be asked again. */
  const eraseRepeatable = async (isSelected: (event: IncomingEvent) => boolean): Promise<void> => {
    const keys = await readMembers(store, indexes.repeatable);
    const found = await store.inspectMany<InboxRecord>("inbox", keys);
    const selected = found.flatMap((record) =>
      record === undefined || record instanceof ParleyError || !isSelected(record.event) ? [] : [record],
    );
    await eraseRecords(selected.map(({ event }) => event.key));
  };

  /** Makes missing messages of the conversation not count as damage from now on. */
  const allowGaps = async (conversationId: string): Promise<Change[]> => {
    const head = await slots.head(conversationId);
    if (head?.keptFrom === undefined) return [];
    const at = entryAt.head(conversationId);
    return [
      {
        kind: "set",
        at,
        value: { next: head.next, ...toLast(head) } satisfies Head,
        ttlMs: outliving(retentionMs),
      },
    ];
  };

  const eraseConversation = async (conversationId: string): Promise<ErasureReport> => {
    // If the erasure is interrupted, the erased messages must not look lost.
    const changes: Change[] = [...(await allowGaps(conversationId))];
    let messages = 0;
    // A lone call is stored under its own key.
    const keys = new Set([conversationId]);
    for await (const { position, message, id } of slots.all(conversationId)) {
      if (message !== undefined) {
        messages++;
        keys.add(message.turnKey);
      }
      if (id !== undefined) changes.push({ kind: "delete", at: entryAt.messageId(conversationId, id) });
      changes.push({ kind: "delete", at: entryAt.slot(conversationId, position) });
    }
    const hashes = await blobHashes(store, conversationId);
    const blobCount = await countBlobs(conversationId, hashes);
    await eraseBlobs(conversationId, hashes);
    await eraseRecords([...keys]);
    await eraseRepeatable((event) => event.conversationId === conversationId);
    await writeBatches(store, changes);
    // These are erased last, because an interrupted deletion can be found and completed while they exist.
    await store.write([
      { kind: "delete", at: entryAt.head(conversationId) },
      { kind: "delete", at: entryAt.settings(conversationId) },
      { kind: "delete", at: entryAt.summary(conversationId) },
      ...(await unindexConversation(store, conversationId)),
    ]);
    return { ...nothing, messages, blobs: blobCount, conversations: messages > 0 ? 1 : 0 };
  };

  /** Replaces messages by tombstones. Their ids stay known, so that a late delivery is not stored again. */
  const eraseMessages = async (conversationId: string, scan: ErasureScan): Promise<ErasureReport> => {
    const { selected, isFirstSelected, outdated } = scan;
    const hashes = [...new Set([...scan.hashes, ...scan.versionHashes])];
    await eraseBlobs(conversationId, hashes);
    // This happens while the messages still select the versions.
    for (const { position, message } of outdated)
      await store.update<Slot>(entryAt.slot(conversationId, position), (slot) =>
        "forgotten" in slot || slot.id !== message.id ? undefined : withoutVersions(slot),
      );
    // This comes before the messages, because a repetition needs messages that it can select.
    await eraseFromSettings(conversationId, selected, isFirstSelected);
    // The tombstones expire before the messages around them.
    if (retentionMs !== undefined) await writeBatches(store, await allowGaps(conversationId));
    await eraseRecords(selected.flatMap(({ message }) => (message.role === "user" ? [message.turnKey] : [])));
    for (let from = 0; from < selected.length; from += batchSize) {
      const batch = selected.slice(from, from + batchSize);
      await writeWithoutSummary(
        store,
        conversationId,
        batch.map(({ position }) => position),
        batch.map(({ position, message }) => ({
          kind: "set",
          at: entryAt.slot(conversationId, position),
          value: { forgotten: true, id: message.id } satisfies Tombstone,
          ttlMs: retentionMs,
        })),
      );
    }
    return { ...nothing, messages: selected.length, blobs: hashes.length };
  };

  /** Erases the files that only this message shows, apart from those that it keeps. */
  const eraseFilesOf: Erasure["eraseFilesOf"] = async (conversationId, message, kept) => {
    const staying = new Set(kept === undefined ? [] : hashesOf(kept));
    if (hashesOf(message).every((hash) => staying.has(hash))) return;
    const scan = await scanConversation(slots, conversationId, ({ id }) => id === message.id);
    await eraseBlobs(
      conversationId,
      scan.hashes.filter((hash) => !staying.has(hash)),
    );
  };

  /** Removes a person's ratings from answers. */
  const eraseRatings = async (
    conversationId: string,
    rated: ErasureScan["rated"],
    authorId: string,
  ): Promise<ErasureReport> => {
    for (const { position, message } of rated)
      await store.update<Slot>(entryAt.slot(conversationId, position), (slot) => {
        if ("forgotten" in slot || slot.id !== message.id) return undefined;
        const { [raterOf(slot.id, authorId)]: _own, ...others } = slot.ratings ?? {};
        const { ratings: _ratings, ...rest } = slot;
        return Object.keys(others).length === 0 ? rest : { ...rest, ratings: others };
      });
    return { ...nothing, ratings: rated.length };
  };

  /** Whether the author wrote there and nobody else did, so that the conversation is erased as a whole. */
  const isOnlyAuthor = async (
    conversationId: string,
    authorId: string,
    { selected, rated, othersWrote }: ErasureScan,
  ): Promise<boolean> => {
    if (othersWrote || selected.length > 0) return !othersWrote;
    if (rated.length > 0) return false;
    // An erasure that was interrupted has left no messages, but it unlists the conversation last.
    const listings = await readMembers(store, indexes.listings(conversationId));
    return listings.includes(indexes.conversationsOf(authorId));
  };

  const forgetIn = async (conversationId: string, authorId: string): Promise<ErasureReport> => {
    const scan = await scanConversation(slots, conversationId, isBy(authorId), isRatedBy(authorId));
    if (await isOnlyAuthor(conversationId, authorId, scan))
      return { ...(await eraseConversation(conversationId)), conversations: 1 };
    const ratings = await eraseRatings(conversationId, scan.rated, authorId);
    const messages = scan.selected.length === 0 ? nothing : await eraseMessages(conversationId, scan);
    const report = add(messages, ratings);
    await store.write(unindexAuthor(conversationId, authorId));
    // Another process may have stored a message of the author since the scan.
    if (await slots.isTaken(conversationId, scan.end))
      await store.write(indexAuthor(conversationId, authorId));
    return report;
  };

  const countIn = async (conversationId: string, authorId: string): Promise<ErasureReport> => {
    const scan = await scanConversation(slots, conversationId, isBy(authorId), isRatedBy(authorId));
    const { selected, hashes, messages, rated } = scan;
    const found = { ...nothing, messages: selected.length, blobs: hashes.length, ratings: rated.length };
    if (!(await isOnlyAuthor(conversationId, authorId, scan))) return found;
    const blobCount = await countBlobs(conversationId, await blobHashes(store, conversationId));
    return { ...nothing, messages, blobs: blobCount, conversations: 1 };
  };

  /** Refuses messages that are not stored from now on, so that no process stores one after the scan. */
  const refuseLate = async (conversationId: string, ids: readonly string[]): Promise<void> => {
    const entries = ids.map((id) => entryAt.messageId(conversationId, id));
    const known = await store.hasMany(
      "id",
      entries.map(({ key }) => key),
    );
    for (const at of entries.filter((_, index) => known[index] !== true))
      await store.writeIf([at], [{ kind: "set", at, value: noPosition, ttlMs: lateMs }]);
  };

  const removeIn = async (conversationId: string, removed: RemovedMessages): Promise<ErasureReport> => {
    const { ids, shownAs = [], withLooseFiles = false } = removed;
    const [allIds, allShownAs] = [new Set(ids), new Set(shownAs)];
    await refuseLate(conversationId, ids);
    const isSweep = ids.length === 0 && shownAs.length === 0;
    if (isSweep && (await blobHashes(store, conversationId)).length === 0) return nothing;
    const scan = await scanConversation(
      slots,
      conversationId,
      (message) => allIds.has(message.id) || message.shownAs?.some((key) => allShownAs.has(key)) === true,
    );
    const loose = withLooseFiles
      ? (await blobHashes(store, conversationId)).filter((hash) => !scan.remainingBlobs.has(hash))
      : [];
    const hashes = [...new Set([...scan.hashes, ...loose])];
    if (scan.selected.length === 0 && hashes.length === 0) return nothing;
    return eraseMessages(conversationId, { ...scan, hashes });
  };

  const replaceIn = async (conversationId: string, message: StoredMessage): Promise<boolean> => {
    const id = entryAt.messageId(conversationId, message.id);
    const position = await store.get<number>(id.space, id.key);
    const before = position === undefined ? undefined : await slots.at(conversationId, position);
    if (position === undefined || before?.id !== message.id || isLater(before, message)) return false;
    // Only the files may still hold what an earlier call has erased.
    if (isDeepStrictEqual(before, message)) return true;
    const kept = new Set(hashesOf(message));
    const settings = entryAt.settings(conversationId);
    const { title } = (await store.get<ConversationSettings>(settings.space, settings.key)) ?? {};
    // Only then the whole conversation must be read.
    if (title !== undefined || hashesOf(before).some((hash) => !kept.has(hash))) {
      const scan = await scanConversation(slots, conversationId, ({ id: each }) => each === message.id);
      await eraseBlobs(
        conversationId,
        scan.hashes.filter((hash) => !kept.has(hash) && !scan.versionHashes.includes(hash)),
      );
      await eraseFromSettings(conversationId, [], scan.isFirstSelected);
    }
    return await replaceWithoutSummary(store, conversationId, position, (now) =>
      now.id === message.id && !isLater(now, message) ? message : undefined,
    );
  };

  /** Erases a title that was made from the first message, and moves a reset that names an erased message. */
  const eraseFromSettings = async (
    conversationId: string,
    selected: ErasureScan["selected"],
    isFirstSelected: boolean,
  ): Promise<void> => {
    const at = entryAt.settings(conversationId);
    for (;;) {
      const { value: settings, unchanged } = await store.observe<ConversationSettings>(at);
      if (settings === undefined) return;
      const { title, resetAfter, ...others } = settings;
      const reset = selected.find(({ message }) => message.id === resetAfter);
      const isTitleErased = isFirstSelected && title !== undefined;
      if (!isTitleErased && reset === undefined) return;
      const after = reset === undefined ? resetAfter : reset.previousId;
      const value: ConversationSettings = {
        ...others,
        ...(isTitleErased || title === undefined ? {} : { title }),
        ...(after === undefined ? {} : { resetAfter: after }),
      };
      const change: Change = { kind: "set", at, value, ttlMs: outliving(retentionMs) };
      if ((await store.writeIf([unchanged], [change])) === undefined) return;
    }
  };

  /** Runs work on one conversation, or on every conversation in which the author has written. */
  const overConversations = async (
    { conversationId, authorId }: { readonly conversationId: string | undefined; readonly authorId: string },
    work: (id: string) => Promise<ErasureReport>,
  ): Promise<ErasureReport> => {
    const ids =
      conversationId === undefined
        ? await readMembers(store, indexes.conversationsOf(authorId))
        : [conversationId];
    let sum = nothing;
    for (const id of ids) sum = add(sum, await work(id));
    return sum;
  };

  /** Counts the settings that the author made for themselves. */
  const countSettings = async (authorId: string): Promise<ErasureReport> => {
    const at = entryAt.layer(authorId);
    const settings = Object.keys((await store.get<LayerValues>(at.space, at.key)) ?? {}).length;
    return { ...nothing, settings };
  };

  return {
    eraseFilesOf,
    async deleteConversation(conversationId) {
      const report = await writers.run(conversationId, () => eraseConversation(conversationId));
      await store.scrub();
      return report;
    },
    async forgetAuthor(conversationId, authorId) {
      const report = await overConversations({ conversationId, authorId }, (id) =>
        writers.run(id, () => forgetIn(id, authorId)),
      );
      await eraseRepeatable(
        (event) =>
          isByEither(event, authorId) &&
          (conversationId === undefined || event.conversationId === conversationId),
      );
      if (conversationId === undefined) await spending.forgetPerson(authorId);
      const own = conversationId === undefined ? await countSettings(authorId) : nothing;
      if (own.settings > 0) await store.write([{ kind: "delete", at: entryAt.layer(authorId) }]);
      await store.scrub();
      return add(report, own);
    },
    async countAuthor(conversationId, authorId) {
      const found = await overConversations({ conversationId, authorId }, (id) => countIn(id, authorId));
      return conversationId === undefined ? add(found, await countSettings(authorId)) : found;
    },
    async replaceMessage(conversationId, message) {
      const isReplaced = await writers.run(conversationId, () => replaceIn(conversationId, message));
      if (isReplaced) await store.scrub();
      return isReplaced;
    },
    async removeMessages(conversationId, removed) {
      const report = await writers.run(conversationId, () => removeIn(conversationId, removed));
      await store.scrub();
      return report;
    },
  };
}

/** Whether a stored message has a later edit than the other form. */
function isLater(stored: Pick<StoredMessage, "editedAt">, other: StoredMessage): boolean {
  return (stored.editedAt ?? -Infinity) > (other.editedAt ?? -Infinity);
}

function isBy(authorId: string): (message: StoredMessage) => boolean {
  return ({ author }) => author?.id === authorId;
}

/** Whether a person has called a command, or it was used on a message of that person. */
function isByEither(event: IncomingEvent, authorId: string): boolean {
  const subject = event.kind === "call" ? event.subject?.author.id : undefined;
  return event.author.id === authorId || subject === authorId;
}

function isRatedBy(authorId: string): (message: StoredMessage) => boolean {
  return (message) => ratingBy(message, authorId) !== undefined;
}

function add(one: ErasureReport, other: ErasureReport): ErasureReport {
  return {
    messages: one.messages + other.messages,
    blobs: one.blobs + other.blobs,
    conversations: one.conversations + other.conversations,
    settings: one.settings + other.settings,
    ratings: one.ratings + other.ratings,
  };
}

/** The result of one pass over a conversation. */
interface ErasureScan {
  readonly selected: readonly SelectedMessage[];
  /** The number of all messages. */
  readonly messages: number;
  /** Whether a user message is left. */
  readonly othersWrote: boolean;
  /** Hashes of the blobs that the remaining messages show. */
  readonly remainingBlobs: ReadonlySet<string>;
  /** Hashes of the blobs that only selected messages show. */
  readonly hashes: readonly string[];
  readonly isFirstSelected: boolean;
  /** Remaining answers that were looked for by their ratings. */
  readonly rated: readonly Pick<SelectedMessage, "position" | "message">[];
  /** Remaining answers to selected questions, which have earlier versions. */
  readonly outdated: readonly Pick<SelectedMessage, "position" | "message">[];
  /** Hashes of the blobs that only those versions and selected messages show. */
  readonly versionHashes: readonly string[];
  /** The position after the last message. */
  readonly end: number;
}

/** A message that is to be erased. */
interface SelectedMessage {
  readonly position: number;
  readonly message: StoredMessage;
  /** The id of the last message before it that remains. */
  readonly previousId: string | undefined;
}

/**
 * Reads a conversation once and selects messages.
 * @throws ParleyError `store-corrupt` if a message is damaged, because its author is then unknown
 */
async function scanConversation(
  slots: Slots,
  conversationId: string,
  isSelected: (message: StoredMessage) => boolean,
  isRated: (message: StoredMessage) => boolean = () => false,
): Promise<ErasureScan> {
  const selected: SelectedMessage[] = [];
  const remainingBlobs = new Set<string>();
  /** Ids and turns of the selected questions, because answers name either. */
  const questions = new Set<string>();
  const outdated: { position: number; message: StoredMessage }[] = [];
  const rated: { position: number; message: StoredMessage }[] = [];
  let previousId: string | undefined;
  let othersWrote = false;
  let messages = 0;
  let firstId: string | undefined;
  let end = 0;
  for await (const { position, message, damage } of slots.all(conversationId)) {
    if (damage !== undefined) throw damage;
    end = position + 1;
    if (message === undefined) continue;
    messages++;
    firstId ??= message.id;
    if (isSelected(message)) {
      selected.push({ position, message, previousId });
      if (message.role === "user") questions.add(message.id).add(message.turnKey);
    } else {
      othersWrote ||= message.role === "user";
      const isOutdated = message.versions !== undefined && answersTo(message, questions);
      if (isOutdated) outdated.push({ position, message });
      if (isRated(message)) rated.push({ position, message });
      for (const hash of hashesOf(isOutdated ? withoutVersions(message) : message)) remainingBlobs.add(hash);
      previousId = message.id;
    }
  }
  const hashes = new Set(selected.flatMap(({ message }) => hashesOf(message)));
  const versionHashes = new Set(outdated.flatMap(({ message }) => hashesOf(message)));
  return {
    selected,
    outdated,
    rated,
    versionHashes: [...versionHashes].filter((hash) => !remainingBlobs.has(hash)),
    messages,
    othersWrote,
    remainingBlobs,
    hashes: [...hashes].filter((hash) => !remainingBlobs.has(hash)),
    isFirstSelected: selected[0] !== undefined && selected[0].message.id === firstId,
    end,
  };
}

/** Whether a message answers one of the questions, which are given by ids and turns. */
function answersTo({ turnKey, receipt }: StoredMessage, questions: ReadonlySet<string>): boolean {
  return questions.has(turnKey) || (receipt?.files?.of ?? []).some((id) => questions.has(id));
}

function withoutVersions<T extends object>(message: T): T {
  if (!("versions" in message)) return message;
  const { versions: _versions, ...rest } = message;
  return rest as T;
}

/** The hashes of the blobs that a message and its earlier versions show. */
function hashesOf({ parts, versions = [] }: Pick<StoredMessage, "parts" | "versions">): string[] {
  return [
    ...parts.flatMap((part) => ("blob" in part && part.blob !== undefined ? [part.blob.hash] : [])),
    ...versions.flatMap((version) => hashesOf(version)),
  ];
}
