import { createHash } from "node:crypto";
import type {
  Conversations,
  ConversationSettings,
  ConversationSummary,
  StoredMessage,
} from "../core/storage.ts";
import { ParleyError } from "../core/errors.ts";
import type { BlobStore } from "./blobs.ts";
import type { KeyedQueue } from "../support/keyed-queue.ts";
import type { Change, KeyValueStore } from "./key-value.ts";
import { entryAt, indexes, platformOf } from "./store-keys.ts";
import { outliving, platforms } from "./retention.ts";
import { createSlots } from "./slots.ts";
import { toTitle } from "./title.ts";

export interface ConversationLogOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  /** Writers of one process take turns by conversation, so that they do not race each other for the same slot. */
  readonly writers: KeyedQueue;
  /** How long a message is kept. Default: for ever. */
  readonly retentionMs?: number | undefined;
}

/** Losing this often to other processes in a row means that something is badly wrong. */
const maxConflicts = 10_000;

/**
 * The log of every conversation over a key-value store: one entry a message ("slot"), written set-if-absent
 * together with its id and the new end, so that writers in several processes lose nothing and an append costs the
 * same however long the conversation is.
 */
export function createConversationLog(options: ConversationLogOptions): Conversations {
  const { store, blobs, writers, retentionMs } = options;
  const outlivingMs = outliving(retentionMs);
  const slots = createSlots(store);
  const announced = new Set<string>();

  const touch = (conversationId: string): Change[] => {
    const platform = platformOf(conversationId);
    const index = indexes.conversations(platform);
    const changes: Change[] = [{ kind: "add-member", index, member: conversationId, score: Date.now() }];
    if (!announced.has(platform))
      changes.push({ kind: "add-member", index: indexes.platforms, member: platform, score: 0 });
    return changes;
  };

  const append = async (conversationId: string, message: StoredMessage) => {
    const id = entryAt.messageId(conversationId, message.id);
    let position = await slots.hintedEnd(conversationId);
    for (let conflict = 0; conflict < maxConflicts; conflict++) {
      const slot = entryAt.slot(conversationId, position);
      const taken = await store.writeIfAbsent(
        [id, slot],
        [
          { kind: "set", at: slot, value: message, ttlMs: retentionMs },
          { kind: "set", at: id, value: position, ttlMs: retentionMs },
          {
            kind: "set",
            at: entryAt.head(conversationId),
            value: { next: position + 1 },
            ttlMs: outlivingMs,
          },
          ...(outlivingMs === undefined
            ? []
            : [{ kind: "keep", at: entryAt.settings(conversationId), ttlMs: outlivingMs } as const]),
          ...touch(conversationId),
        ],
      );
      if (taken === undefined) {
        announced.add(platformOf(conversationId));
        return "appended";
      }
      if (taken === id) return "duplicate";
      position = await slots.firstFree(conversationId, position + 1);
    }
    throw new ParleyError("store-unavailable", "other processes kept taking the end of the conversation");
  };

  const readSettings = async (conversationId: string) => {
    const { space, key } = entryAt.settings(conversationId);
    return store.get<ConversationSettings>(space, key);
  };

  const exists = async (conversationId: string) => {
    const [settings, [hasHead]] = await Promise.all([
      readSettings(conversationId),
      store.hasMany("head", [entryAt.head(conversationId).key]),
    ]);
    return settings !== undefined || hasHead === true;
  };

  return {
    async append(conversationId, message) {
      return writers.run(conversationId, () => append(conversationId, message));
    },
    async recent(conversationId, { maxMessages }) {
      return slots.last(conversationId, maxMessages);
    },
    async find(conversationId, messageId) {
      const id = entryAt.messageId(conversationId, messageId);
      const position = await store.get<number>(id.space, id.key);
      return position === undefined ? undefined : slots.at(conversationId, position);
    },
    exists,
    async settings(conversationId) {
      return (await readSettings(conversationId)) ?? {};
    },
    async saveSettings(conversationId, settings) {
      await writers.run(conversationId, async () => {
        const isNew = !(await exists(conversationId));
        const merged = { ...(await readSettings(conversationId)), ...settings };
        await store.write([
          { kind: "set", at: entryAt.settings(conversationId), value: merged, ttlMs: outlivingMs },
          ...(isNew ? touch(conversationId) : []),
        ]);
      });
    },
    async list(prefix, { max }) {
      const found = await newest(store, prefix, max);
      return summarize(store, found);
    },
    async putBlob(conversationId, bytes, mediaType) {
      const hash = createHash("sha256").update(bytes).digest("hex");
      await store.write([
        { kind: "add-member", index: indexes.blobs(conversationId), member: hash, score: Date.now() },
      ]);
      await blobs.put(conversationId, hash, { bytes, mediaType }, outlivingMs);
      return { hash, mediaType, sizeBytes: bytes.byteLength };
    },
    async getBlob(conversationId, hash) {
      return blobs.get(conversationId, hash);
    },
  };
}

type Found = Omit<ConversationSummary, "title">;

async function newest(store: KeyValueStore, prefix: string, max: number): Promise<Found[]> {
  const searched = prefix.includes(":") ? [platformOf(prefix)] : await platforms(store);
  const found: Found[] = [];
  for (const platform of searched) {
    let taken = 0;
    for (let offset = 0; taken < max; offset += 200) {
      const index = indexes.conversations(platform);
      const page = await store.backend.readIndex(index, { order: "highest-first", offset, max: 200 });
      if (page.length === 0) break;
      for (const { member, score } of page) {
        if (taken === max || !member.startsWith(prefix)) continue;
        found.push({ conversationId: member, updatedAt: score });
        taken++;
      }
    }
  }
  return found.sort((a, b) => b.updatedAt - a.updatedAt).slice(0, max);
}

/** Titles that were given, else the beginning of what was said first. Three round trips, however many there are. */
async function summarize(store: KeyValueStore, found: readonly Found[]): Promise<ConversationSummary[]> {
  const ids = found.map(({ conversationId }) => conversationId);
  const [settings, heads, firsts] = await Promise.all([
    store.getMany<ConversationSettings>(
      "settings",
      ids.map((id) => entryAt.settings(id).key),
    ),
    store.hasMany(
      "head",
      ids.map((id) => entryAt.head(id).key),
    ),
    store.getMany<StoredMessage>(
      "slot",
      ids.map((id) => entryAt.slot(id, 0).key),
    ),
  ]);
  return found.flatMap((summary, index) => {
    // Expired since it was ranked.
    if (heads[index] !== true && settings[index] === undefined) return [];
    return [{ ...summary, title: settings[index]?.title ?? toTitle(firsts[index]) }];
  });
}
