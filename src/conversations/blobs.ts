import { createHash } from "node:crypto";
import { ParleyError } from "../core/errors.ts";
import type { StoredBlob } from "../core/storage.ts";

/** Bytes kept beside a conversation under their SHA-256 in lower-case hex. Failures are ParleyErrors. */
export interface BlobStore {
  /** Durable when it resolves. Putting the same bytes again extends their time to live. */
  put(conversationId: string, hash: string, blob: StoredBlob, ttlMs: number | undefined): Promise<void>;
  /** @throws ParleyError `store-corrupt` when the bytes are not what was put */
  get(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
  delete(conversationId: string, hashes: readonly string[]): Promise<void>;
  /** Removes bytes without an entry: left by crashes and by expired entries. `now` in Unix ms. */
  sweep(now: number): Promise<void>;
  /** Encrypts blobs outside the store's entries with the newest key; resolves to how many were rewritten. */
  reencrypt(): Promise<number>;
}

/** Whether a string can be the name of a blob; anything else must never become part of a path. */
export function isBlobHash(hash: string): boolean {
  return /^[0-9a-f]{64}$/.test(hash);
}

/** @throws ParleyError `store-corrupt` when the bytes are not those that the hash names */
export function checkBlobHash(bytes: Uint8Array, hash: string): void {
  if (createHash("sha256").update(bytes).digest("hex") !== hash)
    throw new ParleyError("store-corrupt", `the blob ${hash} is damaged: restore it from a backup`);
}
