import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { spaces } from "./backend.ts";
import type { Encryption } from "./encryption.ts";
import { type KeyValueStore, readRaw } from "./key-value.ts";

/**
 * `complete` means that everything is encrypted and bound to its address, and anything else is refused.
 * `migrating` means that values from before encryption are accepted until `reencrypt`.
 */
type SealingState = "complete" | "migrating";

/** The mark is encrypted and bound like every entry, so that it cannot be made without a key. */
const mark = { space: "meta", key: "sealing" } as const;

const batchSize = 200;

/**
 * Decides which forms of stored values are accepted. If the keys do not fit the store, it fails at the start,
 * before the first message. A fresh store is `complete` at once.
 * @throws ParleyError `config` (a key is missing), `store-corrupt` (the mark was changed or removed)
 */
export async function prepareSealing(store: KeyValueStore, encryption: Encryption, log: Log): Promise<void> {
  encryption.acceptsPlain = false;
  const state = await readState(store);
  encryption.acceptsPlain = state !== "complete";
  if (!encryption.isOn) return;
  encryption.acceptsPlain = (state ?? (await createState(store, encryption))) !== "complete";
  if (encryption.acceptsPlain) {
    log.warn({}, "the store accepts values that are not encrypted: run npm run reencrypt once");
  }
}

/** Accepts only encrypted values that are bound to their address, from now on and even after a restart. */
export async function completeSealing(store: KeyValueStore, encryption: Encryption): Promise<void> {
  await store.write([{ kind: "set", at: mark, value: "complete" satisfies SealingState }]);
  encryption.acceptsPlain = false;
}

/** Restores the mark of a store that lost its data while it was in use. */
export async function restoreSealing(store: KeyValueStore, encryption: Encryption): Promise<void> {
  if (!encryption.isOn) return;
  const value: SealingState = encryption.acceptsPlain ? "migrating" : "complete";
  await store.writeIf([mark], [{ kind: "set", at: mark, value }]);
}

async function readState(store: KeyValueStore): Promise<SealingState | undefined> {
  return store.get<SealingState>(mark.space, mark.key);
}

async function createState(store: KeyValueStore, encryption: Encryption): Promise<SealingState> {
  const found = await findForms(store, encryption);
  if (found === "bound") {
    // Another process may have created both in the meantime.
    const state = await readState(store);
    if (state !== undefined) return state;
    throw new ParleyError(
      "store-corrupt",
      "the mark that everything in the store is encrypted was removed: restore a backup",
    );
  }
  const value: SealingState = found === "empty" ? "complete" : "migrating";
  await store.writeIf([mark], [{ kind: "set", at: mark, value }]);
  return (await readState(store)) ?? value;
}

/**
 * Whether any entry is bound to its address, which happens only after the mark is written. It reads every
 * entry once in the life of a store, except blobs, which are large.
 */
async function findForms(store: KeyValueStore, encryption: Encryption): Promise<"empty" | "old" | "bound"> {
  let found: "empty" | "old" = "empty";
  for (const space of spaces) {
    let keys: string[] = [];
    const hasBound = async () => {
      const values = space === "blob" ? [] : await readRaw(store, space, keys);
      keys = [];
      return values.some((value) => value !== undefined && encryption.entries.formOf(value) === "bound");
    };
    for await (const key of store.backend.keys(space)) {
      found = "old";
      keys.push(key);
      if (keys.length >= batchSize && (await hasBound())) return "bound";
    }
    if (keys.length > 0 && (await hasBound())) return "bound";
  }
  return found;
}
