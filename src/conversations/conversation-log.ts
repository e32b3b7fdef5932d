import { maxRecentChars } from "../core/stored-text.ts";
import { createHash } from "node:crypto";
import type {
  Conversations,
  ConversationSettings,
  NotedWithMessage,
  StoredMessage,
} from "../core/storage.ts";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import { maxRatings, type RatingOutcome } from "../core/feedback.ts";
import type { Log } from "../core/telemetry.ts";
import type { KeyedQueue } from "../support/keyed-queue.ts";
import type { BlobStore } from "./blobs.ts";
import type { Resolves } from "./backend.ts";
import { indexActivity, indexAuthor, indexPin, indexPlaces } from "./conversation-index.ts";
import { listConversations } from "./list-conversations.ts";
import { readMembers } from "./index-members.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { outliving, unlistExpiredBlobs } from "./retention.ts";
import { searchConversations } from "./search-conversations.ts";
import { confirmAfterMs, createSlots, type Head } from "./slots.ts";
import { entryAt, indexes } from "./store-keys.ts";
import { type Slot, toMessage } from "./stored-message.ts";
import { systemClock } from "../support/clock.ts";
import { steadyClock } from "../support/steady-clock.ts";

/** What the log works with. */
export interface ConversationLogOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly log: Log;
  /** Serializes the writes of this process by conversation, so that they do not compete for the same slot. */
  readonly writers: KeyedQueue;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  /** How long a message is kept, in milliseconds. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

/** So many lost races for a slot in a row are a fault, not contention. */
const maxConflicts = 10_000;

/**
 * The log of every conversation over a key-value store: one entry per message (a slot), written set-if-absent
 * together with its id, the new end and the indexes. Writers in several processes lose nothing, and an append costs
 * the same however long the conversation is.
 */
export function createConversationLog(options: ConversationLogOptions): Conversations {
  const { store, blobs, log, writers, clock = systemClock, retentionMs } = options;
  const outlivingMs = outliving(retentionMs);
  const slots = createSlots(store, clock);
  const readSettings = async (conversationId: string) => {
    const { space, key } = entryAt.settings(conversationId);
    return store.get<ConversationSettings>(space, key);
  };

  /** The settings of a conversation with what a message notes in them; no changes where it notes nothing. */
  const toNoting = async (
    conversationId: string,
    { within, room }: NotedWithMessage,
    isFirst: boolean,
  ): Promise<readonly Change[]> => {
    const places = isFirst ? within : undefined;
    if (places === undefined && room === undefined) return [];
    const before = await readSettings(conversationId);
    const merged: ConversationSettings = {
      ...before,
      ...(room === undefined ? {} : { room: { ...before?.room, ...room } }),
      ...(before?.within !== undefined || places === undefined ? {} : { within: places }),
    };
    return [
      { kind: "set", at: entryAt.settings(conversationId), value: merged, ttlMs: outlivingMs },
      ...indexPlaces(conversationId, before?.within ?? [], merged.within ?? []),
    ];
  };

  const append = async (conversationId: string, message: StoredMessage, noted: NotedWithMessage = {}) => {
    const id = entryAt.messageId(conversationId, message.id);
    let head = await slots.head(conversationId);
    const noting = await toNoting(conversationId, noted, head === undefined);
    let position = head?.next ?? 0;
    let misses = 0;
    for (let conflict = 0; conflict < maxConflicts; conflict++) {
      const slot = entryAt.slot(conversationId, position);
      const previous = { ...entryAt.slot(conversationId, position - 1), mustExist: true };
      const isKept = head?.keptFrom !== undefined && position > head.keptFrom;
      const failed = await store.writeIf(
        // While a failover goes on, the end may have been read from a server with more than this one has. A message that
        // stays missing is damage, which must not keep people from going on.
        isKept && misses < confirmAfterMs.length ? [id, slot, previous] : [id, slot],
        [
          { kind: "set", at: slot, value: message, ttlMs: retentionMs },
          { kind: "set", at: id, value: position, ttlMs: retentionMs },
          {
            kind: "set",
            at: entryAt.head(conversationId),
            value: {
              next: position + 1,
              ...(retentionMs === undefined ? { keptFrom: head?.keptFrom ?? position } : {}),
            } satisfies Head,
            ttlMs: outlivingMs,
          },
          ...(outlivingMs === undefined || noting.length > 0
            ? []
            : [{ kind: "keep", at: entryAt.settings(conversationId), ttlMs: outlivingMs } as const]),
          ...noting,
          ...indexActivity(conversationId, steadyClock.now()),
          ...(message.author === undefined ? [] : indexAuthor(conversationId, message.author.id)),
        ],
      );
      if (failed === undefined) return "appended";
      if (failed === id) return "duplicate";
      if (failed === previous) {
        await clock.sleep(confirmAfterMs[misses++] ?? 0);
        head = await slots.head(conversationId);
        position = head?.next ?? 0;
        continue;
      }
      position = await slots.firstFree(conversationId, position + 1);
    }
    throw new ParleyError("store-unavailable", "other processes kept taking the end of the conversation");
  };

  const look = async (conversationId: string) => {
    const [before, [hasHead]] = await Promise.all([
      readSettings(conversationId),
      store.hasMany("head", [entryAt.head(conversationId).key]),
    ]);
    return { before, isNew: before === undefined && hasHead !== true };
  };

  const mergeSettings = (conversationId: string, settings: ConversationSettings, resolves?: Resolves) =>
    writers.run(conversationId, async () => {
      const { before, isNew } = await look(conversationId);
      const merged = { ...before, ...settings };
      await store.write(
        [
          { kind: "set", at: entryAt.settings(conversationId), value: merged, ttlMs: outlivingMs },
          ...(isNew ? indexActivity(conversationId, steadyClock.now()) : []),
          ...indexPlaces(conversationId, before?.within ?? [], merged.within ?? []),
          ...(before?.isPinned === merged.isPinned ? [] : indexPin(conversationId, merged.isPinned === true)),
        ],
        resolves,
      );
    });

  return {
    async append(conversationId, message, noted) {
      return writers.run(conversationId, () => append(conversationId, message, noted));
    },
    replace: (conversationId, message) =>
      writers.run(conversationId, async () => {
        if ((await append(conversationId, message)) === "appended") return "appended";
        const id = entryAt.messageId(conversationId, message.id);
        const position = await store.get<number>(id.space, id.key);
        if (position === undefined || position < 0) return "refused";
        let isReplaced = false;
        await store.update<Slot>(entryAt.slot(conversationId, position), (slot) => {
          const before = toMessage(slot);
          isReplaced = before?.id === message.id && (before.attempt ?? 0) <= (message.attempt ?? 0);
          return isReplaced ? message : undefined;
        });
        if (!isReplaced) return "refused";
        await store.backend.scrub();
        return "replaced";
      }),
    async recent(conversationId, { maxMessages, maxChars = maxRecentChars }) {
      return slots.last(conversationId, maxMessages, maxChars);
    },
    async find(conversationId, messageId) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      return position === undefined ? undefined : slots.at(conversationId, position);
    },
    async setShownAs(conversationId, messageId, keys) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      if (position === undefined) return;
      await store.update<Slot>(
        entryAt.slot(conversationId, position),
        (slot) =>
          // Erased, and maybe the position of another message since.
          "forgotten" in slot || slot.id !== messageId ? undefined : { ...slot, shownAs: [...keys] },
        "soon",
      );
    },
    async rate(conversationId, messageId, { rater, rating }) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      if (position === undefined || position < 0) return "gone";
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
      return (await readSettings(conversationId)) ?? {};
    },
    saveSettings: (conversationId, settings) => mergeSettings(conversationId, settings),
    noteSettings: (conversationId, settings) => mergeSettings(conversationId, settings, "soon"),
    savePlaces: (conversationId, within) => mergeSettings(conversationId, { within }, "soon"),
    list: (prefix, query) => listConversations({ store, slots, log }, prefix, query),
    search: (prefix, search) => searchConversations(store, prefix, search, clock),
    listWithin: (place) => readMembers(store, indexes.conversationsWithin(place)),
    async putBlob(conversationId, bytes, mediaType) {
      const hash = createHash("sha256").update(bytes).digest("hex");
      const index = indexes.blobs(conversationId);
      const now = steadyClock.now();
      await store.write([
        ...(outlivingMs === undefined
          ? []
          : await unlistExpiredBlobs(store, { conversationId, now, ttlMs: outlivingMs })),
        { kind: "add-member", index, member: hash, score: now },
      ]);
      await blobs.put(conversationId, hash, { bytes, mediaType }, outlivingMs);
      return { hash, mediaType, sizeBytes: bytes.byteLength };
    },
    async getBlob(conversationId, hash) {
      return blobs.get(conversationId, hash);
    },
  };
}
