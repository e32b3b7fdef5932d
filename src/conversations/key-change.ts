import { isParleyError, ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { type EntryAddress, spaces } from "./backend.ts";
import type { BlobStore } from "./blobs.ts";
import type { Encryption } from "./encryption.ts";
import { type KeyValueStore, readRaw } from "./key-value.ts";
import { completeSealing } from "./sealing-mark.ts";

/** What a change of keys works with. */
export interface KeyChangeOptions {
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
  readonly encryption: Encryption;
  readonly log: Log;
}

/**
 * Rewrites everything that is not encrypted with the newest key and bound to its address, while the store is in use;
 * then marks the store, so that other forms are refused. Older keys are not needed afterwards. Can be interrupted
 * and run again. Values that cannot be decrypted are logged and left. Resolves to the number of entries and blobs
 * rewritten.
 * @throws ParleyError `config` when there is no key, or one of the store is missing
 */
export async function reencrypt(options: KeyChangeOptions): Promise<number> {
  const { store, blobs, encryption, log } = options;
  if (!encryption.isOn)
    throw new ParleyError("config", "STORE_ENCRYPTION_KEYS is empty: there is no key to encrypt with");
  let changed = await blobs.reencrypt();
  for (const space of spaces) {
    for await (const key of store.backend.keys(space)) {
      try {
        if (await reencryptEntry(store, encryption, { space, key })) changed++;
      } catch (error) {
        if (!isParleyError(error, "store-corrupt")) throw error;
        log.error({ space, key, err: error }, "damaged entry left as it is");
      }
    }
  }
  await completeSealing(store, encryption);
  await store.backend.scrub();
  return changed;
}

async function reencryptEntry(
  store: KeyValueStore,
  { entries }: Encryption,
  at: EntryAddress,
): Promise<boolean> {
  const [old] = await readRaw(store, at.space, [at.key]);
  if (old === undefined || entries.isCurrent(old)) return false;
  // When `replace` fails, a concurrent write has stored it with the newest key.
  return store.backend.replace(at, old, entries.seal(at, entries.open(at, old)));
}
