import type { BlobStore } from "./blobs.ts";
import { readPlatforms, unindexConversation } from "./conversation-index.ts";
import { sweepEventIndexes } from "./event-index.ts";
import { readMembers } from "./index-members.ts";
import { type KeyValueStore, writeBatches } from "./key-value.ts";
import { entryAt, indexes } from "./store-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/**
 * How long a conversation's head, settings and blobs are kept, given how long its messages are. The head must
 * outlive the messages: without it, numbering would begin again at 0.
 */
export function outliving(retentionMs: number | undefined): number | undefined {
  return retentionMs === undefined ? undefined : retentionMs + dayMs;
}

/**
 * Removes expired data from files, indexes and disks; reads never return it in any case.
 * @param now Unix ms: everything that expired before it is removed
 */
export async function sweep(store: KeyValueStore, blobs: BlobStore, now: number): Promise<void> {
  const removed = await store.backend.sweep(now);
  await blobs.sweep(now);
  await unlistExpired(store);
  await sweepEventIndexes(store, now);
  if (removed > 0) await store.backend.scrub();
}

/** Unlists expired conversations; the least recently active come first, so it stops at the first that remains. */
async function unlistExpired(store: KeyValueStore): Promise<void> {
  for (const platform of await readPlatforms(store)) {
    const index = indexes.conversations(platform);
    for (;;) {
      const page = await store.backend.readIndex(index, { order: "lowest-first", offset: 0, max: 200 });
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
      for (const id of expired) await unlist(store, id);
      if (firstLeft !== -1 || ids.length === 0) break;
    }
  }
}

/** Hashes of a conversation's blobs. */
export async function blobHashes(store: KeyValueStore, conversationId: string): Promise<readonly string[]> {
  return readMembers(store, indexes.blobs(conversationId));
}

async function unlist(store: KeyValueStore, conversationId: string): Promise<void> {
  const index = indexes.blobs(conversationId);
  const hashes = await blobHashes(store, conversationId);
  await writeBatches(store, [
    ...hashes.map((member) => ({ kind: "remove-member", index, member }) as const),
    ...(await unindexConversation(store, conversationId)),
  ]);
}
