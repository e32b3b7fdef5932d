import type { StoredBlob } from "../core/storage.ts";

/** Bytes kept beside a conversation under their SHA-256 in lower-case hex. Failures are ParleyErrors. */
export interface BlobStore {
  /** Durable when it resolves. The same bytes again only prolong their life. */
  put(conversationId: string, hash: string, blob: StoredBlob, ttlMs: number | undefined): Promise<void>;
  /** @throws ParleyError `store-corrupt` when the bytes are not what was put */
  get(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
  delete(conversationId: string, hashes: readonly string[]): Promise<void>;
  /** Removes bytes that nothing names any more: remains of crashes and of expired entries. */
  sweep(now: number): Promise<void>;
  /** Brings what is not in the store's entries under the newest key; resolves to how many blobs that were. */
  reencrypt(): Promise<number>;
}

/** Whether a string can be a blob's name; everything else is refused before it comes near a path. */
export function isBlobHash(hash: string): boolean {
  return /^[0-9a-f]{64}$/.test(hash);
}
