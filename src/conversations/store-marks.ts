import { right, type Finding } from "../core/checks.ts";
import { ParleyError } from "../core/errors.ts";
import type { Encryption } from "./encryption.ts";
import type { KeyValueStore } from "./key-value.ts";
import { spaces } from "./keys.ts";

/** Present where everything is encrypted. It is sealed like each entry, so it needs a key to be made. */
const sealingMark = { space: "meta", key: "sealing" } as const;
const sealed = "complete";

/** Present in the target of a copy until that is complete. It holds the name of the source. */
const copyMark = { space: "meta", key: "copy" } as const;

/** Present where the inbox has the records of this version. */
export const inboxMark = { space: "meta", key: "inbox" } as const;

/** Whether an entry is about its store itself, and is not copied. */
export function isOwnMark(space: string, key: string): boolean {
  return space === "meta" && [sealingMark, copyMark, inboxMark].some((mark) => mark.key === key);
}

/**
 * Checks at the start, before the first message, that a copy into the store is complete and that the keys fit
 * it. An empty store is marked as encrypted if there are keys, unless it is a look.
 * @throws ParleyError `config` (a key is missing, filled without keys, half a copy), or `store-corrupt` where
 *   the mark is forged
 */
export async function checkMarks(
  store: KeyValueStore,
  encryption: Encryption,
  isLook: boolean,
): Promise<Finding> {
  const subject = "Encryption";
  await expectWhole(store);
  const state = await sealingOf(store);
  if (!encryption.isOn) return right(subject, "off: there is no key in STORE_ENCRYPTION_KEYS");
  if (state === "none" && (await isEmpty(store))) {
    if (!isLook) await store.writeIf([sealingMark], [{ kind: "set", at: sealingMark, value: sealed }]);
  } else if (state !== "sealed" && (await sealingOf(store)) !== "sealed")
    // It was read again, because another process may have marked and filled the store meanwhile.
    throw new ParleyError(
      "config",
      "the store holds values that are not encrypted, from before STORE_ENCRYPTION_KEYS was set: stop Parley and run parley copy <this store> <an empty store>, which encrypts everything, and set STORE_URL to the new store; or leave the setting empty",
    );
  return right(subject, "on, and the keys fit the store");
}

/** @throws ParleyError `config` if a copy into the store was not completed */
export async function expectWhole(store: KeyValueStore): Promise<void> {
  if ((await store.get(copyMark.space, copyMark.key)) !== undefined)
    throw new ParleyError(
      "config",
      "a copy into this store was not completed: run parley copy again, with the same two stores and keys",
    );
}

/** Which values are encrypted. In a store of version 4 that may be only those since a key was set. */
export async function sealingOf(store: KeyValueStore): Promise<"none" | "partly" | "sealed"> {
  const state = await store.get<string>(sealingMark.space, sealingMark.key);
  if (state === undefined) return "none";
  return state === sealed ? "sealed" : "partly";
}

/**
 * Marks an empty store as the target of a copy, or finds that a copy from the same store has begun.
 * @throws ParleyError `config` if the store holds anything else
 */
export async function beginCopy(store: KeyValueStore, source: string, isSealed: boolean): Promise<void> {
  const begunFrom = await store.get<string>(copyMark.space, copyMark.key);
  if (begunFrom === source) return;
  if (begunFrom !== undefined || !(await isEmpty(store)))
    throw new ParleyError(
      "config",
      begunFrom === undefined
        ? "the store to copy into is not empty: name an empty one"
        : `the store to copy into has half a copy of another store (${begunFrom}): name that one, or an empty target`,
    );
  await store.write([
    { kind: "set", at: copyMark, value: source },
    ...(isSealed ? [{ kind: "set", at: sealingMark, value: sealed } as const] : []),
  ]);
}

/** Marks a copy as complete, so that the store can be used. */
export async function completeCopy(store: KeyValueStore): Promise<void> {
  await store.write([{ kind: "delete", at: copyMark }]);
}

async function isEmpty({ backend }: KeyValueStore): Promise<boolean> {
  for (const space of spaces)
    for await (const { key } of backend.scan(space))
      if (space !== inboxMark.space || key !== inboxMark.key) return false;
  return true;
}
