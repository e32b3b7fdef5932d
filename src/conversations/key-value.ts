import {
  Keyv,
  type KeyvEncryptionAdapter,
  type KeyvSerializationAdapter,
  type KeyvStorageAdapter,
} from "keyv";
import type { Json } from "../core/events.ts";
import {
  type Backend,
  type BackendChange,
  type EntryAddress,
  type EntryReader,
  type IndexChange,
  spaces,
  type Space,
} from "./backend.ts";

/** One step of an atomic write, before Keyv has encoded its value. `ttlMs` undefined: no expiry. */
export type Change =
  | {
      readonly kind: "set";
      readonly at: EntryAddress;
      readonly value: unknown;
      readonly ttlMs?: number | undefined;
    }
  | { readonly kind: "keep"; readonly at: EntryAddress; readonly ttlMs: number | undefined }
  | { readonly kind: "delete"; readonly at: EntryAddress }
  | IndexChange;

/**
 * Keyv over a {@link Backend}. Values are JSON; they pass through Keyv's pipeline (serialize, encrypt). A failure
 * never looks like an absent value: each is a ParleyError `store-unavailable` or `store-corrupt`.
 */
export interface KeyValueStore {
  get<T>(space: Space, key: string): Promise<T | undefined>;
  /** One round trip; the values in the order of the keys. */
  getMany<T>(space: Space, keys: readonly string[]): Promise<readonly (T | undefined)[]>;
  hasMany(space: Space, keys: readonly string[]): Promise<readonly boolean[]>;
  /** All or nothing, durable when it resolves. */
  write(changes: readonly Change[]): Promise<void>;
  /** Like `write`, but changes nothing if one of `ifAbsent` exists; resolves to the first of those. */
  writeIfAbsent(
    ifAbsent: readonly EntryAddress[],
    changes: readonly Change[],
  ): Promise<EntryAddress | undefined>;
  readonly backend: Backend;
}

/** @see {@link KeyValueStore} */
export function createKeyValueStore(
  backend: Backend,
  options: { readonly encryption?: KeyvEncryptionAdapter | undefined } = {},
): KeyValueStore {
  const keyvs = new Map(spaces.map((space) => [space, openKeyv(backend.reader(space), options.encryption)]));
  const keyv = (space: Space) => keyvs.get(space) as Keyv;

  const encode = async (change: Change): Promise<BackendChange> => {
    switch (change.kind) {
      case "set":
        return {
          kind: "set",
          at: change.at,
          value: String(await keyv(change.at.space).encode({ value: change.value as Json })),
          expires: toExpires(change.ttlMs),
        };
      case "keep":
        return { kind: "keep", at: change.at, expires: toExpires(change.ttlMs) };
      case "delete":
      case "add-member":
      case "remove-member":
      case "trim-index":
        return change;
    }
  };
  const apply = async (ifAbsent: readonly EntryAddress[], changes: readonly Change[]) =>
    backend.attempt(async () => backend.apply(ifAbsent, await Promise.all(changes.map(encode))));

  return {
    backend,
    async get<T>(space: Space, key: string) {
      return backend.attempt(async () => keyv(space).get<T>(key));
    },
    async getMany<T>(space: Space, keys: readonly string[]) {
      if (keys.length === 0) return [];
      return backend.attempt(async () => keyv(space).getMany<T>([...keys]));
    },
    async hasMany(space, keys) {
      if (keys.length === 0) return [];
      return backend.attempt(async () => keyv(space).hasMany([...keys]));
    },
    async write(changes) {
      await apply([], changes);
    },
    async writeIfAbsent(ifAbsent, changes) {
      const taken = await apply(ifAbsent, changes);
      return taken === -1 ? undefined : ifAbsent[taken];
    },
  };
}

const batchSize = 200;

/** Many changes in several atomic writes, in order: for changes that need not happen together. */
export async function writeBatches(store: KeyValueStore, changes: readonly Change[]): Promise<void> {
  for (let from = 0; from < changes.length; from += batchSize)
    await store.write(changes.slice(from, from + batchSize));
}

/**
 * Keyv swallows failures while its `error` event has a listener (a read returns `undefined`), and throws them when
 * it has none: so it must have none.
 */
function openKeyv(reader: EntryReader, encryption: KeyvEncryptionAdapter | undefined): Keyv {
  return new Keyv({
    store: toKeyvStorage(reader),
    serialization: plainJson,
    // The backends enforce expiry themselves, and `keep` moves it without rewriting the value.
    checkExpired: false,
    ...(encryption === undefined ? {} : { encryption }),
  });
}

/** Keyv only reads here: every write goes through `Backend.apply`. `expires` has Keyv take the reader as it is. */
function toKeyvStorage(reader: EntryReader): KeyvStorageAdapter {
  const storage = {
    capabilities: { expires: true },
    get: (key: string) => reader.get(key),
    getMany: (keys: string[]) => reader.getMany(keys),
    hasMany: (keys: string[]) => reader.hasMany(keys),
  };
  return storage as unknown as KeyvStorageAdapter;
}

/** Keyv's own also carries bytes and bigints, which the store never holds, and takes four times as long to read. */
const plainJson: KeyvSerializationAdapter = {
  stringify: (value) => JSON.stringify(value),
  // `never` stands for the type that the reader asked for.
  parse: (text) => JSON.parse(text) as never,
};

function toExpires(ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : Math.ceil(Date.now() + ttlMs);
}
