import { isDeepStrictEqual } from "node:util";
import { ParleyError } from "../core/errors.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { InboxRecord } from "../core/inbox.ts";
import type { LayerValues } from "../core/layered-settings.ts";
import { raterOf } from "../core/raters.ts";
import type { SpendingLedger } from "../core/spending.ts";
import type { StoredMessage, Archive, ConversationSettings, ErasureReport } from "../core/storage.ts";
import type { KeyedQueue } from "../support/queues.ts";
import type { BlobStore } from "./blobs.ts";
import { indexAuthor, unindexAuthor, unindexConversation, readMembers } from "./conversation-index.ts";
import {
  type ErasurePlan,
  type ErasureSource,
  hashesOf,
  nothing,
  planAll,
  planOfAuthor,
  planRemoval,
  scanFor,
  withoutVersions,
} from "./erasure-plan.ts";
import { eraseRecord } from "./inbox-record.ts";
import { batchSize, type Change, type KeyValueStore, type Observed, writeBatches } from "./key-value.ts";
import { toLast } from "./log-plan.ts";
import { outliving } from "./retention.ts";
import { replaceWithoutSummary, writeWithoutSummary } from "./rolling-summary.ts";
import { createSlots, type Slot } from "./slots.ts";
import { entryAt, indexes, type Head, type Tombstone } from "./keys.ts";

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

/** The position of a message that was removed before it was stored. */
const noPosition = -1;
/** How long after its removal a message may still be delivered. */
const lateMs = 24 * 60 * 60 * 1000;

interface ErasureParts extends ErasureSource, Pick<ErasureOptions, "blobs" | "retentionMs"> {}

/** Creates {@link Erasure}: each method plans, removes and confirms. */
export function createErasure(options: ErasureOptions): Erasure {
  const { store, writers, spending } = options;
  const parts: ErasureParts = { ...options, slots: createSlots(store) };

  /** Plans an erasure within a conversation and carries it out, while this process writes nothing there. */
  const erase = (id: string, plan: () => Promise<ErasurePlan | undefined>): Promise<ErasureReport> =>
    writers.run(id, async () => {
      const planned = await plan();
      if (planned === undefined) return nothing;
      await remove(parts, planned);
      await confirm(parts, planned);
      return planned.report;
    });

  /** Adds up work on one conversation, or on every conversation in which the author has written. */
  const overConversations = async (
    conversationId: string | undefined,
    authorId: string,
    work: (id: string) => Promise<ErasureReport>,
  ): Promise<ErasureReport> => {
    const all = conversationId === undefined;
    const ids = all ? await readMembers(store, indexes.conversationsOf(authorId)) : [conversationId];
    let sum = all ? await countSettings(store, authorId) : nothing;
    for (const id of ids) sum = add(sum, await work(id));
    return sum;
  };

  return {
    async eraseFilesOf(conversationId, message, kept) {
      const staying = new Set(kept === undefined ? [] : hashesOf(kept));
      if (hashesOf(message).every((hash) => staying.has(hash))) return;
      const { hashes } = await scanFor(parts.slots, conversationId, message.id);
      await eraseBlobs(
        parts,
        conversationId,
        hashes.filter((hash) => !staying.has(hash)),
      );
    },
    async deleteConversation(conversationId) {
      const report = await erase(conversationId, () => planAll(parts, conversationId));
      await store.scrub();
      return report;
    },
    async forgetAuthor(conversationId, authorId) {
      const report = await overConversations(conversationId, authorId, (id) =>
        erase(id, () => planOfAuthor(parts, id, authorId)),
      );
      await eraseRepeatable(
        store,
        (event) =>
          isByEither(event, authorId) &&
          (conversationId === undefined || event.conversationId === conversationId),
      );
      if (conversationId === undefined) await spending.forgetPerson(authorId);
      if (report.settings > 0) await store.write([{ kind: "delete", at: entryAt.layer(authorId) }]);
      await store.scrub();
      return report;
    },
    countAuthor: (conversationId, authorId) =>
      overConversations(
        conversationId,
        authorId,
        async (id) => (await planOfAuthor(parts, id, authorId)).report,
      ),
    async replaceMessage(conversationId, message) {
      const isReplaced = await writers.run(conversationId, () => replaceIn(parts, conversationId, message));
      if (isReplaced) await store.scrub();
      return isReplaced;
    },
    async removeMessages(conversationId, removed) {
      const report = await erase(conversationId, async () => {
        await refuseLate(store, conversationId, removed.ids);
        return planRemoval(parts, conversationId, removed);
      });
      await store.scrub();
      return report;
    },
  };
}

/**
 * Removes what is planned, in an order in which an interrupted removal can be planned again: what hangs on
 * the messages goes before them, and what finds the conversation goes last.
 */
async function remove(parts: ErasureParts, plan: ErasurePlan): Promise<void> {
  const { store, retentionMs } = parts;
  const { conversationId, isWhole, selected, hashes } = plan;
  await eraseBlobs(parts, conversationId, hashes);
  if (isWhole) {
    // A lone call is stored under its own key.
    await eraseRecords(store, [conversationId, ...plan.turnKeys]);
    await eraseRepeatable(store, (event) => event.conversationId === conversationId);
    await eraseEntries(parts, plan);
    return;
  }
  await eraseVersionsAndRatings(store, plan);
  if (selected.length === 0 && hashes.length === 0) return;
  await eraseFromSettings(parts, conversationId, selected, plan.isFirstSelected);
  // The tombstones expire before the messages around them.
  if (retentionMs !== undefined) await writeBatches(store, await allowGaps(parts, conversationId));
  await eraseRecords(
    store,
    selected.flatMap(({ message }) => (message.role === "user" ? [message.turnKey] : [])),
  );
  await buryMessages(parts, plan);
}

/** Removes everything of a conversation. */
async function eraseEntries(parts: ErasureParts, { conversationId, slots }: ErasurePlan): Promise<void> {
  const { store } = parts;
  await writeBatches(store, [
    // If the erasure is interrupted, the erased messages must not look lost.
    ...(await allowGaps(parts, conversationId)),
    ...slots.flatMap(({ position, id }): Change[] => [
      ...(id === undefined ? [] : [{ kind: "delete", at: entryAt.messageId(conversationId, id) } as const]),
      { kind: "delete", at: entryAt.slot(conversationId, position) },
    ]),
  ]);
  // These are erased last, because an interrupted deletion can be found and completed while they exist.
  await store.write([
    { kind: "delete", at: entryAt.head(conversationId) },
    { kind: "delete", at: entryAt.settings(conversationId) },
    { kind: "delete", at: entryAt.summary(conversationId) },
    ...(await unindexConversation(store, conversationId)),
  ]);
}

/** Replaces messages by tombstones. Their ids stay known, so that a late delivery is not stored again. */
async function buryMessages(
  { store, retentionMs }: ErasureParts,
  { conversationId, selected }: ErasurePlan,
): Promise<void> {
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
}

/** Removes earlier answers to messages that go, while those still select them, and a person's ratings. */
async function eraseVersionsAndRatings(store: KeyValueStore, plan: ErasurePlan): Promise<void> {
  const { conversationId, outdated, rated, author } = plan;
  const change = async (
    { position, message }: ErasurePlan["rated"][number],
    toRest: (slot: StoredMessage) => StoredMessage,
  ): Promise<void> =>
    store.update<Slot>(entryAt.slot(conversationId, position), (slot) =>
      "forgotten" in slot || slot.id !== message.id ? undefined : toRest(slot),
    );
  for (const placed of outdated) await change(placed, withoutVersions);
  for (const placed of rated)
    await change(placed, (slot) => {
      const { [raterOf(slot.id, author ?? "")]: _own, ...others } = slot.ratings ?? {};
      const { ratings: _ratings, ...rest } = slot;
      return Object.keys(others).length === 0 ? rest : { ...rest, ratings: others };
    });
}

/** Unlists an author, unless another process has stored a message of the author since the plan was made. */
async function confirm({ store, slots }: ErasureParts, plan: ErasurePlan): Promise<void> {
  const { conversationId, isWhole, author } = plan;
  if (isWhole || author === undefined) return;
  await store.write(unindexAuthor(conversationId, author));
  const end = (plan.slots.at(-1)?.position ?? -1) + 1;
  if (await slots.isTaken(conversationId, end)) await store.write(indexAuthor(conversationId, author));
}

async function eraseBlobs(
  { store, blobs }: ErasureParts,
  conversationId: string,
  hashes: readonly string[],
): Promise<void> {
  await blobs.delete(conversationId, hashes);
  const index = indexes.blobs(conversationId);
  await writeBatches(
    store,
    hashes.map((member) => ({ kind: "remove-member", index, member })),
  );
}

/**
 * Erases the records of events that are over, whose keys stay duplicates. Open ones stay, because the
 * request to erase is one of them.
 */
async function eraseRecords(store: KeyValueStore, keys: readonly string[]): Promise<void> {
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
}

/** Erases events that are over, of which no log knows, and which could be asked again. */
async function eraseRepeatable(
  store: KeyValueStore,
  isSelected: (event: IncomingEvent) => boolean,
): Promise<void> {
  const keys = await readMembers(store, indexes.repeatable);
  const found = await store.inspectMany<InboxRecord>("inbox", keys);
  const selected = found.flatMap((record) =>
    record === undefined || record instanceof ParleyError || !isSelected(record.event)
      ? []
      : [record.event.key],
  );
  await eraseRecords(store, selected);
}

/** Makes missing messages of the conversation not count as damage from now on. */
async function allowGaps({ slots, retentionMs }: ErasureParts, conversationId: string): Promise<Change[]> {
  const head = await slots.head(conversationId);
  if (head?.keptFrom === undefined) return [];
  const at = entryAt.head(conversationId);
  const value: Head = { next: head.next, ...toLast(head) };
  return [{ kind: "set", at, value, ttlMs: outliving(retentionMs) }];
}

/** Refuses messages that are not stored from now on, so that no process stores one after the scan. */
async function refuseLate(
  store: KeyValueStore,
  conversationId: string,
  ids: readonly string[],
): Promise<void> {
  const entries = ids.map((id) => entryAt.messageId(conversationId, id));
  const known = await store.hasMany(
    "id",
    entries.map(({ key }) => key),
  );
  for (const at of entries.filter((_, index) => known[index] !== true))
    await store.writeIf([at], [{ kind: "set", at, value: noPosition, ttlMs: lateMs }]);
}

/** Puts an edited message in the place of its earlier form. False: there is none, or a later one. */
async function replaceIn(parts: ErasureParts, conversationId: string, message: StoredMessage) {
  const { store, slots } = parts;
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
    const scan = await scanFor(slots, conversationId, message.id);
    await eraseBlobs(
      parts,
      conversationId,
      scan.hashes.filter((hash) => !kept.has(hash) && !scan.versionHashes.includes(hash)),
    );
    await eraseFromSettings(parts, conversationId, [], scan.isFirstSelected);
  }
  return await replaceWithoutSummary(store, conversationId, position, (now) =>
    now.id === message.id && !isLater(now, message) ? message : undefined,
  );
}

/** Erases a title that was made from the first message, and moves a reset that names an erased message. */
async function eraseFromSettings(
  { store, retentionMs }: ErasureParts,
  conversationId: string,
  selected: ErasurePlan["selected"],
  isFirstSelected: boolean,
): Promise<void> {
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
}

/** Counts the settings that the author made for themselves. */
async function countSettings(store: KeyValueStore, authorId: string): Promise<ErasureReport> {
  const at = entryAt.layer(authorId);
  const settings = Object.keys((await store.get<LayerValues>(at.space, at.key)) ?? {}).length;
  return { ...nothing, settings };
}

/** Whether a stored message has a later edit than the other form. */
function isLater(stored: Pick<StoredMessage, "editedAt">, other: StoredMessage): boolean {
  return (stored.editedAt ?? -Infinity) > (other.editedAt ?? -Infinity);
}

/** Whether a person has called a command, or it was used on a message of that person. */
function isByEither(event: IncomingEvent, authorId: string): boolean {
  const subject = event.kind === "call" ? event.subject?.author.id : undefined;
  return event.author.id === authorId || subject === authorId;
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
