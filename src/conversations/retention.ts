import type { BlobStore } from "./blobs.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt, indexes, platformOf } from "./store-keys.ts";

const dayMs = 24 * 60 * 60 * 1000;

/**
 * How long what belongs to messages is kept, given how long they are. What says where a conversation ends must
 * outlive them: without it, numbering would begin again at 0.
 */
export function outliving(retentionMs: number | undefined): number | undefined {
  return retentionMs === undefined ? undefined : retentionMs + dayMs;
}

/**
 * Takes what has expired out of the files, lists and disks; reads never show it in any case.
 * @param now Unix ms: everything that ended before it goes
 */
export async function sweep(store: KeyValueStore, blobs: BlobStore, now: number): Promise<void> {
  const removed = await store.backend.sweep(now);
  await blobs.sweep(now);
  await unlistExpired(store);
  if (removed > 0) await store.backend.scrub();
}

/** Conversations of which nothing is left; the oldest come first, so it stops at the first that is alive. */
async function unlistExpired(store: KeyValueStore): Promise<void> {
  for (const platform of await platforms(store)) {
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
      const firstAlive = ids.findIndex((_, index) => heads[index] === true || settings[index] === true);
      const gone = firstAlive === -1 ? ids : ids.slice(0, firstAlive);
      for (const id of gone) await unlist(store, id);
      if (firstAlive !== -1 || ids.length === 0) break;
    }
  }
}

/** Every platform that has ever had a conversation. */
export async function platforms(store: KeyValueStore): Promise<readonly string[]> {
  const page = { order: "lowest-first", offset: 0, max: 1000 } as const;
  return (await store.backend.readIndex(indexes.platforms, page)).map(({ member }) => member);
}

/** The names of a conversation's blobs. */
export async function blobHashes(store: KeyValueStore, conversationId: string): Promise<readonly string[]> {
  const hashes: string[] = [];
  for (;;) {
    const page = { order: "lowest-first", offset: hashes.length, max: 1000 } as const;
    const rows = await store.backend.readIndex(indexes.blobs(conversationId), page);
    if (rows.length === 0) return hashes;
    hashes.push(...rows.map(({ member }) => member));
  }
}

async function unlist(store: KeyValueStore, conversationId: string): Promise<void> {
  const hashes = await blobHashes(store, conversationId);
  await store.write([
    ...hashes.map(
      (hash) => ({ kind: "remove-member", index: indexes.blobs(conversationId), member: hash }) as const,
    ),
    {
      kind: "remove-member",
      index: indexes.conversations(platformOf(conversationId)),
      member: conversationId,
    },
  ]);
}
