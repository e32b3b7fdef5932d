import type { IndexChange } from "./backend.ts";
import type { BlobStore } from "./blobs.ts";
import { readPlatforms, unindexConversation, readMembers } from "./conversation-index.ts";
import { sweepEventIndexes } from "./inbox-record.ts";
import { batchSize, type Change, type KeyValueStore } from "./key-value.ts";
import { sweepCounts } from "./spending-ledger.ts";
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
  const removed = (await store.backend.sweep(now)) + (await sweepCounts(store, now));
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
      const page = await store.readIndex(index, { order: "lowest-first", offset: 0, max: 200 });
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
      // What is there after all is looked at in the next sweep.
      for (const id of expired) if (!(await unlist(store, id))) isDone = true;
      if (isDone) break;
    }
  }
}

/** Hashes of a conversation's blobs. */
export async function blobHashes(store: KeyValueStore, conversationId: string): Promise<readonly string[]> {
  return readMembers(store, indexes.blobs(conversationId));
}

/** So many at a time; more than are added, so that the list does not grow. */
const maxUnlisted = 20;

/**
 * The changes that unlist some of a conversation's expired blobs; a conversation that is always in use is never
 * unlisted as a whole. Blobs from before there was a retention have no expiry and stay listed, as the newest.
 */
export async function unlistExpiredBlobs(
  store: KeyValueStore,
  { conversationId, now, ttlMs }: { conversationId: string; now: number; ttlMs: number },
): Promise<readonly IndexChange[]> {
  const index = indexes.blobs(conversationId);
  const page = await store.readIndex(index, { order: "lowest-first", offset: 0, max: maxUnlisted });
  // By score, so that one that is put again meanwhile stays; members with the score of a full page's last may follow.
  const isFull = page.length === maxUnlisted;
  const maxScore = Math.min(now - ttlMs, (page.at(-1)?.score ?? 0) - (isFull ? 1 : 0));
  const due = page.filter(({ score }) => score <= maxScore).map(({ member }) => member);
  if (due.length === 0) return [];
  const exist = await store.hasMany(
    "blob",
    due.map((hash) => entryAt.blob(conversationId, hash).key),
  );
  const left = due.filter((_, position) => exist[position] === true);
  return [
    ...left.map((member) => ({ kind: "add-member", index, member, score: now }) as const),
    { kind: "trim-index", index, maxScore },
  ];
}

/**
 * Resolves to whether the conversation is gone. It may have been read from a server that was replaced, or exist again: then
 * nothing changes.
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
