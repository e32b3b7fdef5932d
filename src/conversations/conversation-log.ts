import { createHash } from "node:crypto";
import {
  maxRecentChars,
  type Conversations,
  type ConversationSettings,
  type NotedWithMessage,
  type StoredMessage,
  maxRatings,
  type RatingOutcome,
} from "../core/storage.ts";
import { raterOf } from "../core/raters.ts";
import { ParleyError } from "../core/errors.ts";
import type { KeyedQueue } from "../support/queues.ts";
import type { BlobStore } from "./blobs.ts";
import { indexActivity, indexAuthor, indexPin, indexPlaces, readMembers } from "./conversation-index.ts";
import { type KeyValueStore } from "./key-value.ts";
import { outliving } from "./retention.ts";
import { createRollingSummary } from "./rolling-summary.ts";
import { createLogPlanner, type WritePlan } from "./log-plan.ts";
import { createSlots, type Slot, toMessage } from "./slots.ts";
import { systemClock } from "../support/clock.ts";
import { entryAt, indexes, type Head } from "./keys.ts";

/** The options of the log. */
interface ConversationLogOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  /** Runs this process's writes of a conversation one by one, so that they do not compete for a slot. */
  readonly writers: KeyedQueue;
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
  const { store, blobs, writers, retentionMs } = options;
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

  const look = async (conversationId: string) => {
    const [{ value: before, unchanged }, [hasHead]] = await Promise.all([
      store.observe<ConversationSettings>(entryAt.settings(conversationId)),
      store.hasMany("head", [entryAt.head(conversationId).key]),
    ]);
    return { before, unchanged, isNew: before === undefined && hasHead !== true };
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
    async find(conversationId, which) {
      if (typeof which !== "string") return slots.at(conversationId, 0);
      const id = entryAt.messageId(conversationId, which);
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
    async existing(conversationIds) {
      const entries = [entryAt.settings, entryAt.head].flatMap((at) => conversationIds.map(at));
      const found = await store.observeAll(entries);
      const isThere = found.map(({ value, damage }) => value !== undefined || damage !== undefined);
      return conversationIds.filter((_, at) => isThere[at] || isThere[at + conversationIds.length]);
    },
    async settings(conversationId) {
      const { space, key } = entryAt.settings(conversationId);
      return (await store.get<ConversationSettings>(space, key)) ?? {};
    },
    saveSettings,
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
