import { ParleyError } from "../core/errors.ts";
import { spaces } from "./backend.ts";
import type { BlobStore } from "./blobs.ts";
import type { Encryption } from "./encryption.ts";
import type { KeyValueStore } from "./key-value.ts";

const check = { space: "meta", key: "key-check" } as const;

/**
 * Fails at the start, not at the first message, when the keys do not fit the store.
 * @throws ParleyError `config`, `store-corrupt`
 */
export async function checkKeys(store: KeyValueStore, encryption: Encryption): Promise<void> {
  await store.get(check.space, check.key);
  const stored = await rawValue(store, check.space, check.key);
  if (encryption.isOn && (stored === undefined || !encryption.isCurrent(stored)))
    await store.write([{ kind: "set", at: check, value: "fits" }]);
}

/**
 * Rewrites everything that is not encrypted with the newest key, while the store is in use. Older keys are not needed
 * afterwards. Resolves to the number of entries and blobs rewritten.
 * @throws ParleyError `config` when there is no key
 */
export async function reencrypt(
  store: KeyValueStore,
  blobs: BlobStore,
  encryption: Encryption,
): Promise<number> {
  if (!encryption.isOn)
    throw new ParleyError("config", "STORE_ENCRYPTION_KEYS is empty: there is no key to encrypt with");
  let changed = await blobs.reencrypt();
  for (const space of spaces) {
    for await (const key of store.backend.keys(space)) {
      // When `replace` fails, a concurrent write has stored it with the newest key.
      const old = await rawValue(store, space, key);
      if (old === undefined || encryption.isCurrent(old)) continue;
      const value = await encryption.adapter.encrypt(await encryption.adapter.decrypt(old));
      if (await store.backend.replace({ space, key }, old, value)) changed++;
    }
  }
  await store.backend.scrub();
  return changed;
}

/** The stored value, before Keyv decodes it. */
async function rawValue(store: KeyValueStore, space: (typeof spaces)[number], key: string) {
  const { backend } = store;
  return backend.attempt(() => backend.reader(space).get(key));
}
