import type { BlobStore } from "./blobs.ts";
import { readPlatforms, unindexConversation, readMembers } from "./conversation-index.ts";
import { batchSize, type Change, type KeyValueStore } from "./key-value.ts";
import { sweepCounts } from "./spending-ledger.ts";
import { entryAt, indexes } from "./keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/**
 * How long a conversation's head, settings and blobs are kept, by how long its messages are. The head must
 * outlive the messages, because numbering would otherwise begin again at 0.
 */
export function outliving(retentionMs: number | undefined): number | undefined {
  return retentionMs === undefined ? undefined : retentionMs + dayMs;
}

/**
 * Removes expired data, which reads never return anyway, from files, indexes and disks.
 * @param now Unix ms before which everything that expired is removed
 */
export async function sweep(store: KeyValueStore, blobs: BlobStore, now: number): Promise<void> {
  const { swept } = await store.backend.look(now);
  const removed = swept + (await sweepCounts(store, now));
  await blobs.sweep(now);
  await store.write([{ kind: "trim-index", index: indexes.repeatable, maxScore: now }], "soon");
  await unlistExpired(store);
  if (removed > 0) await store.scrub();
}

/** Unlists expired conversations, the least recently active first, and stops at the first that remains. */
async function unlistExpired(store: KeyValueStore): Promise<void> {
  for (const platform of await readPlatforms(store)) {
    const index = indexes.conversations(platform);
    for (;;) {
      const page = await store.range(index, { order: "lowest-first", max: 200 });
      const ids = page.map(({ member }) => member);
      const [heads, settings] = await Promise.all([
        store.hasMany(
          "head",
          ids.map((id) => entryAt.head(id).key),
        ),
        store.hasMany(
          "settings",
          ids.map((id) => entryAt.settings(id).key),
        ),
      ]);
      const firstLeft = ids.findIndex((_, index) => heads[index] === true || settings[index] === true);
      const expired = firstLeft === -1 ? ids : ids.slice(0, firstLeft);
      let isDone = firstLeft !== -1 || ids.length === 0;
      // Conversations that exist after all are checked in the next sweep.
      for (const id of expired) if (!(await unlist(store, id))) isDone = true;
      if (isDone) break;
    }
  }
}

/** The hashes of a conversation's blobs, also of those that have expired since. */
export async function blobHashes(store: KeyValueStore, conversationId: string): Promise<readonly string[]> {
  return readMembers(store, indexes.blobs(conversationId));
}

/**
 * Unlists a conversation and resolves to true if it is gone. It changes nothing if the conversation exists
 * again, or was read from a server that was replaced.
 */
async function unlist(store: KeyValueStore, conversationId: string): Promise<boolean> {
  const index = indexes.blobs(conversationId);
  const hashes = await blobHashes(store, conversationId);
  const changes: Change[] = [
    ...hashes.map((member) => ({ kind: "remove-member", index, member }) as const),
    ...(await unindexConversation(store, conversationId)),
  ];
  const entries = [entryAt.head(conversationId), entryAt.settings(conversationId)];
  for (let from = 0; from < changes.length; from += batchSize) {
    const batch = changes.slice(from, from + batchSize);
    if ((await store.writeIf(entries, batch, "soon")) !== undefined) return false;
  }
  return true;
}
