import { Keyv, type KeyvStorageAdapter } from "keyv";
import { isParleyError, ParleyError } from "../core/errors.ts";
import type { IncomingEvent } from "../core/events.ts";
import type { LayerValues, SettingsStore } from "../core/layered-settings.ts";
import type { Meter } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { nextPiece } from "../support/pieces.ts";
import type { KeyedQueue } from "../support/queues.ts";
import {
  type Backend,
  type BackendChange,
  type IndexChange,
  type IndexMember,
  type IndexPage,
  type PassedLimit,
  type ScoreLimit,
  type Resolves,
  type WriteCondition,
} from "./backend.ts";
import { createEncryption, type Encryption } from "./encryption.ts";
import { type EntryAddress, type Space, spaces, entryAt, isStored } from "./keys.ts";

/**
 * A step of an atomic write before Keyv has encoded its value. Without `ttlMs` it does not expire, and with
 * `kept` an existing entry keeps its expiry.
 */
export type Change =
  | {
      readonly kind: "set";
      readonly at: EntryAddress;
      readonly value: unknown;
      readonly ttlMs?: number | "kept" | undefined;
    }
  | { readonly kind: "keep"; readonly at: EntryAddress; readonly ttlMs: number | undefined }
  | { readonly kind: "delete"; readonly at: EntryAddress }
  | IndexChange;

/** The result of {@link KeyValueStore.observe}. */
export interface Observed<T> {
  readonly value: T | undefined;
  readonly unchanged: WriteCondition;
  /** Why it cannot be read. Then there is no value. */
  readonly damage?: ParleyError;
}

/**
 * Keyv over a {@link Backend}. Values are JSON, encrypted and bound to their address. A failure never looks
 * like an absent value: it is a ParleyError `store-unavailable`, or `store-corrupt` for a value that is
 * damaged or does not have its space's shape. Keys, index names and members must be well-formed Unicode of at
 * most 1,000 bytes without NUL, and keys of writes must not be empty. Otherwise it throws `internal`, because
 * backends replace lone surrogates, which would make one id of two, and Postgres takes no others.
 */
export interface KeyValueStore {
  get<T>(space: Space, key: string): Promise<T | undefined>;
  /** Reads values in one round trip, in the order of the keys. */
  getMany<T>(space: Space, keys: readonly string[]): Promise<readonly (T | undefined)[]>;
  /** Like `getMany`, with the error `store-corrupt` in place of each damaged value. */
  inspectMany<T>(space: Space, keys: readonly string[]): Promise<readonly (T | ParleyError | undefined)[]>;
  hasMany(space: Space, keys: readonly string[]): Promise<readonly boolean[]>;
  /** Reads a value, with the condition for a write that nobody has changed it since. */
  observe<T>(at: EntryAddress): Promise<Observed<T>>;
  /** The same for several values. A damaged one has its error in place of a value. */
  observeAll(at: readonly EntryAddress[]): Promise<readonly Observed<unknown>[]>;
  /** Writes all or nothing, durably unless `resolves` says otherwise. */
  write(changes: readonly Change[], resolves?: Resolves): Promise<void>;
  /** Like `write`, but without changes if a condition is not met. Resolves to the first such condition. */
  writeIf(
    conditions: readonly WriteCondition[],
    changes: readonly Change[],
    resolves?: Resolves,
  ): Promise<WriteCondition | undefined>;
  /** The condition that a value which this process has written is as it was written. */
  asWritten(change: Change): WriteCondition | undefined;
  /**
   * Changes an existing value and keeps its expiry. `change` gets the latest value, and runs again if another
   * writer was faster. It returns `undefined` to change nothing.
   */
  update<T>(at: EntryAddress, change: (value: T) => T | undefined, resolves?: Resolves): Promise<void>;
  /** The same as {@link Backend.range}. */
  range(name: string, page: IndexPage): Promise<readonly IndexMember[]>;
  /** The same as {@link Backend.count}. */
  count(limits: readonly ScoreLimit[], changes: readonly IndexChange[]): Promise<PassedLimit | undefined>;
  /** Removes deleted data from the service's files, like a {@link Backend.apply} that is `scrubbed`. */
  scrub(): Promise<void>;
  readonly backend: Backend;
}

/** The kind of a store's operation. `soon` and `count` are writes that do not wait for a disk. */
type StoreOperation = "read" | "write" | "soon" | "count";

interface KeyValueOptions {
  /** By default nothing is encrypted. */
  readonly encryption?: Pick<Encryption, "entries">;
  /** Learns of each read and write, but not of scans and maintenance. */
  readonly meter?: Meter | undefined;
}

/** Creates a {@link KeyValueStore}. */
export function createKeyValueStore(
  backend: Backend,
  { encryption = createEncryption(), meter }: KeyValueOptions = {},
): KeyValueStore {
  const { entries } = encryption;
  /** The stored forms of values that were written. */
  const written = new WeakMap<Change, WriteCondition>();
  /** Runs an operation and reports its time. */
  const timed = async <T>(operation: StoreOperation, work: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    let outcome: "ok" | "error" = "error";
    try {
      const result = await work();
      outcome = "ok";
      return result;
    } finally {
      meter?.({ kind: "stored", operation, outcome, seconds: (performance.now() - startedAt) / 1000 });
    }
  };
  const decode = (at: EntryAddress, stored: string): Envelope => {
    const envelope = parseEnvelope(entries.open(at, stored));
    checkShape(at.space, envelope.value);
    return envelope;
  };
  const keyvs = new Map(
    spaces.map((space) => [space, openKeyv(backend, space, (key, stored) => decode({ space, key }, stored))]),
  );
  const keyv = (space: Space) => keyvs.get(space) as Keyv;

  const seal = (at: EntryAddress, value: unknown): string =>
    entries.seal(at, JSON.stringify({ value } satisfies Envelope));
  const encode = (change: Change): BackendChange => {
    checkNames(change);
    switch (change.kind) {
      case "set": {
        const { at, value, ttlMs } = change;
        const stored = seal(at, value);
        written.set(change, { ...at, mustBe: stored });
        return {
          kind: "set",
          at,
          value: stored,
          expires: ttlMs === "kept" ? ttlMs : toExpires(ttlMs),
        };
      }
      case "keep":
        return { kind: "keep", at: change.at, expires: toExpires(change.ttlMs) };
      case "delete":
      case "add-member":
      case "append-member":
      case "add-score":
      case "remove-member":
      case "trim-index":
        return change;
    }
  };
  const apply = async (
    conditions: readonly WriteCondition[],
    changes: readonly Change[],
    resolves: Resolves | undefined,
  ) =>
    timed(resolves === "soon" ? "soon" : "write", async () => {
      for (const { key } of conditions) checkName(key);
      return backend.apply(conditions, changes.map(encode), resolves);
    });
  const get = async <T>(space: Space, key: string) => {
    checkName(key);
    return timed("read", async () => keyv(space).get<T>(key));
  };
  const getMany = async <T>(space: Space, keys: readonly string[]) => {
    if (keys.length === 0) return [];
    keys.forEach(checkName);
    return timed("read", async () => keyv(space).getMany<T>([...keys]));
  };

  const observeAll: KeyValueStore["observeAll"] = async (addresses) => {
    if (addresses.length === 0) return [];
    for (const { key } of addresses) checkName(key);
    const found = await timed("read", () => backend.read(addresses));
    const observed: Observed<unknown>[] = [];
    for (const [index, at] of addresses.entries()) {
      const stored = found[index];
      const unchanged: WriteCondition = stored === undefined ? at : { ...at, mustBe: stored };
      await nextPiece();
      try {
        observed.push({ value: stored === undefined ? undefined : decode(at, stored).value, unchanged });
      } catch (error) {
        observed.push({ value: undefined, unchanged, damage: orRethrow(error) });
      }
    }
    return observed;
  };
  const observe = async <T>(at: EntryAddress): Promise<Observed<T>> => {
    const [one] = await observeAll([at]);
    if (one?.damage !== undefined) throw one.damage;
    return one as Observed<T>;
  };

  return {
    backend,
    get,
    getMany,
    async inspectMany<T>(space: Space, keys: readonly string[]) {
      const found = await observeAll(keys.map((key) => ({ space, key })));
      return found.map(({ value, damage }) => damage ?? (value as T | undefined));
    },
    async hasMany(space, keys) {
      if (keys.length === 0) return [];
      keys.forEach(checkName);
      return timed("read", async () => keyv(space).hasMany([...keys]));
    },
    observe,
    observeAll,
    asWritten: (change) => written.get(change),
    async write(changes, resolves) {
      await apply([], changes, resolves);
    },
    async update<T>(at: EntryAddress, change: (value: T) => T | undefined, resolves?: Resolves) {
      for (;;) {
        const { value: before, unchanged } = await observe<T>(at);
        const value = before === undefined ? undefined : change(before);
        if (value === undefined) return;
        if ((await apply([unchanged], [{ kind: "set", at, value, ttlMs: "kept" }], resolves)) === -1) return;
      }
    },
    async scrub() {
      await backend.apply([], [], "scrubbed");
    },
    async writeIf(conditions, changes, resolves) {
      const failed = await apply(conditions, changes, resolves);
      return failed === -1 ? undefined : conditions[failed];
    },
    range: (name, page) => timed("read", () => backend.range(name, page)),
    count: (limits, changes) => timed("count", () => backend.count(limits, changes)),
  };
}

/**
 * The settings of servers, channels and persons, with one entry each, which never expires. If two processes
 * change one holder at the same moment, the later change wins. `writers` orders this process's changes.
 */
export function createSettingsStore(store: KeyValueStore, writers: KeyedQueue): SettingsStore {
  return {
    async read(holders) {
      const keys = holders.map((holder) => entryAt.layer(holder).key);
      const found = await store.getMany<LayerValues>("layer", keys);
      return holders.map((_, index) => found[index] ?? {});
    },
    change: (holder, change) =>
      writers.run(holder, async () => {
        const at = entryAt.layer(holder);
        const before = await store.get<LayerValues>(at.space, at.key);
        const entries = Object.entries({ ...before, ...change }).filter(([, value]) => value !== undefined);
        await store.write([
          entries.length === 0
            ? { kind: "delete", at }
            : { kind: "set", at, value: Object.fromEntries(entries) },
        ]);
      }),
    erase: (holder) =>
      writers.run(holder, async () => {
        await store.write([{ kind: "delete", at: entryAt.layer(holder) }]);
        await store.scrub();
      }),
  };
}

/** The highest number of changes in one write, where there may be any number. */
export const batchSize = 200;

/** Writes many changes in several atomic writes, in order, if they need not happen together. */
export async function writeBatches(store: KeyValueStore, changes: readonly Change[]): Promise<void> {
  for (let from = 0; from < changes.length; from += batchSize)
    await store.write(changes.slice(from, from + batchSize));
}

/** Opens Keyv without a listener for `error`, because with one, failed reads would return `undefined`. */
function openKeyv(backend: Backend, space: Space, open: (key: string, stored: string) => Envelope): Keyv {
  return new Keyv({
    store: toKeyvStorage(backend, space, open),
    // Keyv's own serializer also handles bytes and bigints, which the store never holds, and reads more
    // slowly.
    serialization: false,
    // The backends enforce expiry themselves, and `keep` moves it without rewriting the value.
    checkExpired: false,
  });
}

/**
 * Makes a space look like a storage. Keyv only reads, because every write goes through `Backend.apply`. It
 * accepts rows that are decoded already. `expires` makes Keyv use the storage unchanged.
 */
function toKeyvStorage(
  backend: Backend,
  space: Space,
  open: (key: string, stored: string) => Envelope,
): KeyvStorageAdapter {
  const toAddresses = (keys: readonly string[]) => keys.map((key) => ({ space, key }));
  const getMany = async (keys: string[]) => {
    const values: (Envelope | undefined)[] = [];
    for (const [at, stored] of (await backend.read(toAddresses(keys))).entries()) {
      await nextPiece();
      values.push(stored === undefined ? undefined : open(keys[at] ?? "", stored));
    }
    return values;
  };
  const storage = {
    capabilities: { expires: true },
    get: async (key: string) => (await getMany([key]))[0],
    getMany,
    hasMany: async (keys: string[]) =>
      (await backend.read(toAddresses(keys), "presence")).map((found) => found !== undefined),
  };
  return storage as unknown as KeyvStorageAdapter;
}

function parseEnvelope(text: string): Envelope {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The message of the cause would quote what people wrote.
    throw new ParleyError("store-corrupt", "a stored value is not JSON");
  }
  // Keyv would treat anything without a value as absent.
  if (typeof parsed !== "object" || parsed === null || !Object.hasOwn(parsed, "value"))
    throw new ParleyError("store-corrupt", "a stored value has no content");
  // A damaged checksum would otherwise count as a missing one.
  if (Object.keys(parsed).length > 1)
    throw new ParleyError("store-corrupt", "a stored value has more than its content");
  return parsed;
}

function checkShape(space: Space, value: unknown): void {
  if (value === undefined || isStored(space, value)) return;
  throw new ParleyError("store-corrupt", `a stored value of the space ${space} does not have its shape`, {
    detail: { space },
  });
}

function orRethrow(error: unknown): ParleyError {
  if (isParleyError(error, "store-corrupt")) return error;
  throw error;
}

function checkNames(change: Change): void {
  if ("at" in change) {
    checkName(change.at.key);
    // Keyv treats an empty key as absent.
    if (change.at.key === "") throw new ParleyError("internal", "the key of a stored value is empty");
  } else {
    checkName(change.index);
    if ("member" in change) checkName(change.member);
  }
}

/** A row of an index of Postgres holds two names. */
const maxNameBytes = 1000;

function checkName(name: string): void {
  if (Buffer.byteLength(name) > maxNameBytes || name.includes("\0") || !name.isWellFormed())
    throw new ParleyError("internal", `a name is over ${maxNameBytes} bytes, or holds what no text may hold`);
}

/** An id becomes a part of several names, also with each of its bytes escaped. */
const maxIdBytes = 200;

/** @throws ParleyError `internal` if an id of an event does not fit the names that are made of it */
export function checkIds({ key, conversationId, author, within = [] }: IncomingEvent): void {
  for (const id of [key, conversationId, author.id, ...within])
    if (Buffer.byteLength(id) > maxIdBytes || id.includes("\0"))
      throw new ParleyError("internal", `an id is over ${maxIdBytes} bytes, or holds NUL`);
}

function toExpires(ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : Math.ceil(systemClock.now() + ttlMs);
}

/** A stored value in the form of Keyv. */
interface Envelope {
  readonly value?: unknown;
}
