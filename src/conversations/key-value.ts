import { Keyv, type KeyvEncryptionAdapter, type KeyvSerializationAdapter } from "keyv";
import type { Json } from "../core/events.ts";
import { type Backend, type BackendChange, type Place, spaces, type Space } from "./backend.ts";

/** One step of an atomic write, before Keyv has encoded its value. `ttlMs` undefined: kept for ever. */
export type Change =
  | { readonly kind: "set"; readonly at: Place; readonly value: unknown; readonly ttlMs?: number | undefined }
  | { readonly kind: "keep"; readonly at: Place; readonly ttlMs: number | undefined }
  | Extract<BackendChange, { kind: "delete" | "rank" | "unrank" }>;

/**
 * Keyv over a {@link Backend}: what the rooms of the store read and write with. Values are JSON; they pass
 * through Keyv's pipeline (serialize, encrypt). No failure looks like an absent value: each is a ParleyError
 * `store-unavailable` or `store-corrupt`.
 */
export interface KeyValueStore {
  get<T>(space: Space, key: string): Promise<T | undefined>;
  /** One round trip; the answers in the order of the keys. */
  getMany<T>(space: Space, keys: readonly string[]): Promise<readonly (T | undefined)[]>;
  hasMany(space: Space, keys: readonly string[]): Promise<readonly boolean[]>;
  /** All or nothing, durable when it resolves. */
  write(changes: readonly Change[]): Promise<void>;
  /** Like `write`, but changes nothing where one of `places` exists; resolves to the first such, else `undefined`. */
  writeIfAbsent(places: readonly Place[], changes: readonly Change[]): Promise<Place | undefined>;
  readonly backend: Backend;
}

export function createKeyValueStore(
  backend: Backend,
  options: { readonly encryption?: KeyvEncryptionAdapter | undefined } = {},
): KeyValueStore {
  const keyvs = new Map(spaces.map((space) => [space, openKeyv(backend, space, options.encryption)]));
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
      case "rank":
      case "unrank":
        return change;
    }
  };
  const apply = async (places: readonly Place[], changes: readonly Change[]) =>
    backend.attempt(async () => backend.apply(places, await Promise.all(changes.map(encode))));

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
    async writeIfAbsent(places, changes) {
      const taken = await apply(places, changes);
      return taken === -1 ? undefined : places[taken];
    },
  };
}

/**
 * Keyv hides failures from whoever listens to its `error` event (a read answers `undefined`, a write `false`),
 * and throws them where nobody does: so nobody must. The adapter's own errors (a lost connection) are the
 * backend's to log, not Keyv's to throw out of an event.
 */
function openKeyv(backend: Backend, space: Space, encryption: KeyvEncryptionAdapter | undefined): Keyv {
  const adapter = backend.adapter(space);
  const namespace = adapter.namespace;
  const keyv = new Keyv({
    store: adapter,
    serialization: plainJson,
    // The backends enforce expiry themselves, and `keep` moves it without rewriting the value.
    checkExpired: false,
    ...(namespace === undefined ? {} : { namespace }),
    ...(encryption === undefined ? {} : { encryption }),
  });
  adapter.removeAllListeners("error");
  adapter.on("error", () => {});
  return keyv;
}

/** Keyv's own also carries bytes and bigints, which there are none of, and takes four times as long to read. */
const plainJson: KeyvSerializationAdapter = {
  stringify: (value) => JSON.stringify(value),
  // `never` stands for whatever type the reader asked for.
  parse: (text) => JSON.parse(text) as never,
};

function toExpires(ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : Math.ceil(Date.now() + ttlMs);
}
