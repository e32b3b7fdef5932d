import { type BlobStore, checkBlobHash, isBlobHash } from "./blobs.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";

interface BlobEntry {
  readonly mediaType: string;
  /** Absent where blobs were files. */
  readonly base64?: string;
}

/** Blobs as entries of the store: for several machines that share no disk. */
export function createBlobEntries(store: KeyValueStore): BlobStore {
  return {
    async put(conversationId, hash, { bytes, mediaType }, ttlMs) {
      const at = entryAt.blob(conversationId, hash);
      await store.write([{ kind: "set", at, value: { mediaType, base64: toBase64(bytes) }, ttlMs }]);
    },
    async get(conversationId, hash) {
      if (!isBlobHash(hash)) return undefined;
      const { space, key } = entryAt.blob(conversationId, hash);
      const entry = await store.get<BlobEntry>(space, key);
      if (entry === undefined) return undefined;
      const bytes = Buffer.from(entry.base64 ?? "", "base64");
      checkBlobHash(bytes, hash);
      return { bytes, mediaType: entry.mediaType };
    },
    async delete(conversationId, hashes) {
      await store.write(hashes.map((hash) => ({ kind: "delete", at: entryAt.blob(conversationId, hash) })));
    },
    async sweep() {
      // The entries expire by themselves.
    },
    async reencrypt() {
      // Rewritten with all other entries.
      return 0;
    },
  };
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
