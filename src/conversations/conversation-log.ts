import { createHash } from "node:crypto";
import type {
  Conversations,
  ConversationSettings,
  ConversationSummary,
  StoredMessage,
} from "../core/storage.ts";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import type { KeyedQueue } from "../support/keyed-queue.ts";
import type { BlobStore } from "./blobs.ts";
import type { Resolves } from "./backend.ts";
import { indexActivity, indexAuthor, indexPlaces, readPlatforms } from "./conversation-index.ts";
import { toConversationTitle } from "./conversation-title.ts";
import { readMembers } from "./index-members.ts";
import type { KeyValueStore } from "./key-value.ts";
import { outliving, unlistExpiredBlobs } from "./retention.ts";
import { createSlots, type Head } from "./slots.ts";
import { entryAt, indexes, platformOf } from "./store-keys.ts";
import { type Slot, toMessage } from "./stored-message.ts";
import { steadyClock } from "../support/steady-clock.ts";

/** What the log works with. */
export interface ConversationLogOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly log: Log;
  /** Serializes the writes of this process by conversation, so that they do not compete for the same slot. */
  readonly writers: KeyedQueue;
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
  const { store, blobs, log, writers, retentionMs } = options;
  const outlivingMs = outliving(retentionMs);
  const slots = createSlots(store);
  const append = async (conversationId: string, message: StoredMessage) => {
    const id = entryAt.messageId(conversationId, message.id);
    const head = await slots.head(conversationId);
    let position = head?.next ?? 0;
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
            value: {
              next: position + 1,
              ...(retentionMs === undefined ? { keptFrom: head?.keptFrom ?? position } : {}),
            } satisfies Head,
            ttlMs: outlivingMs,
          },
          ...(outlivingMs === undefined
            ? []
            : [{ kind: "keep", at: entryAt.settings(conversationId), ttlMs: outlivingMs } as const]),
          ...indexActivity(conversationId, steadyClock.now()),
          ...(message.author === undefined ? [] : indexAuthor(conversationId, message.author.id)),
        ],
      );
      if (taken === undefined) return "appended";
      if (taken === id) return "duplicate";
      position = await slots.firstFree(conversationId, position + 1);
    }
    throw new ParleyError("store-unavailable", "other processes kept taking the end of the conversation");
  };

  const readSettings = async (conversationId: string) => {
    const { space, key } = entryAt.settings(conversationId);
    return store.get<ConversationSettings>(space, key);
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
        ],
        resolves,
      );
    });

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
    async exists(conversationId) {
      return !(await look(conversationId)).isNew;
    },
    async settings(conversationId) {
      return (await readSettings(conversationId)) ?? {};
    },
    saveSettings: (conversationId, settings) => mergeSettings(conversationId, settings),
    savePlaces: (conversationId, within) => mergeSettings(conversationId, { within }, "soon"),
    async list(prefix, { max, without }) {
      const found = await newest(store, { prefix, without }, max);
      return summarize(store, log, found);
    },
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

type Found = Omit<ConversationSummary, "title" | "within">;

async function newest(
  store: KeyValueStore,
  { prefix, without }: { readonly prefix: string; readonly without: string | undefined },
  max: number,
): Promise<Found[]> {
  const searched = prefix.includes(":") ? [platformOf(prefix)] : await readPlatforms(store);
  const found: Found[] = [];
  for (const platform of searched) {
    let taken = 0;
    for (let offset = 0; taken < max; offset += 200) {
      const index = indexes.conversations(platform);
      const page = await store.backend.readIndex(index, { order: "highest-first", offset, max: 200 });
      if (page.length === 0) break;
      for (const { member, score } of page) {
        if (taken === max || !member.startsWith(prefix)) continue;
        if (without !== undefined && member.startsWith(without)) continue;
        found.push({ conversationId: member, updatedAt: score });
        taken++;
      }
    }
  }
  return found.sort((a, b) => b.updatedAt - a.updatedAt).slice(0, max);
}

/** With the title that was set, else the beginning of the first message. Three round trips in all. */
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
    const { title, within } = readable(settings[index]) ?? {};
    return [
      {
        ...summary,
        title: title ?? toConversationTitle(toMessage(readable(firsts[index]))),
        ...(within === undefined ? {} : { within }),
      },
    ];
  });
}
