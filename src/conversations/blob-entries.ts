import type { StoredBlob } from "../assistant/types.ts";
import { type BlobStore, isBlobHash } from "./blobs.ts";
import type { KeyValueStore } from "./key-value.ts";
import { places } from "./places.ts";

/** Blobs as entries of the store: for several machines, which share no disk. Keyv writes bytes as base64. */
export function createBlobEntries(store: KeyValueStore): BlobStore {
  return {
    async put(conversationId, hash, { bytes, mediaType }, ttlMs) {
      const at = places.blob(conversationId, hash);
      await store.write([{ kind: "set", at, value: { mediaType, bytes }, ttlMs }]);
    },
    async get(conversationId, hash) {
      if (!isBlobHash(hash)) return undefined;
      const { space, key } = places.blob(conversationId, hash);
      return store.get<StoredBlob>(space, key);
    },
    async delete(conversationId, hashes) {
      await store.write(hashes.map((hash) => ({ kind: "delete", at: places.blob(conversationId, hash) })));
    },
    async sweep() {
      // They expire by themselves.
    },
  };
}
