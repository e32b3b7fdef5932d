import { ParleyError } from "../core/errors.ts";
import type { Json } from "../core/events.ts";
import type { StoredBlob } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { type Backend, type OpenedBackend, type ScannedKey } from "./backend.ts";
import { backendOf } from "./backends.ts";
import { createBlobs, type BlobStore } from "./blobs.ts";
import { inOrder } from "./conversation-index.ts";
import { createEncryption, type Encryption } from "./encryption.ts";
import { type Change, createKeyValueStore, type KeyValueStore } from "./key-value.ts";
import { beginCopy, completeCopy, expectWhole, isOwnMark, sealingOf } from "./store-marks.ts";
import { type Space, spaces } from "./keys.ts";

// A copy moves everything from one store to another, both of which no bot uses. It goes entry by entry and
// index by index, and leaves what is there already, so that one that was killed goes on when it is run again.
// The target has a mark until the counts agree, and no bot starts on it before.

/** What is copied, and how. */
interface CopyOptions {
  /** The URLs of the stores. */
  readonly from: string;
  readonly to: string;
  /** The target is encrypted with the first key. Each of them can open the source. Default: none. */
  readonly encryptionKeys?: readonly string[] | undefined;
  readonly log: Log;
  /** Learns how far the copy is, in words. */
  readonly tell?: (line: string) => void;
}

/** What a copy has found. */
export interface CopyCounts {
  /** The entries of the source, without its own marks. */
  readonly entries: number;
  /** The members of the source's sorted indexes. */
  readonly members: number;
  /** How many entries an earlier run had copied. */
  readonly thereBefore: number;
  /** Entries that cannot be read, each of which the log names. They are not in the target. */
  readonly leftOut: number;
}

/** How many entries or members are read and written together. */
const batchSize = 50;
/** After how many entries of a kind the progress is told. */
const tellEvery = 5000;

interface Side {
  readonly opened: OpenedBackend;
  readonly store: KeyValueStore;
  readonly blobs: BlobStore;
}

/**
 * Copies a store, of this version or the one before, into an empty store, or goes on with a copy that was
 * interrupted. The source stays as it is.
 * @throws ParleyError `config` (a key is missing, the target is not empty), `store-unavailable` (also for an
 *   SQLite file that a bot has open, or counts that differ), `store-corrupt`
 */
export async function copyStore(options: CopyOptions): Promise<CopyCounts> {
  const { from, to, encryptionKeys, log, tell = () => {} } = options;
  // The source is not changed, and nobody else may open it if it is a file.
  const source = await openSide(from, { log, isLook: true, exclusive: true }, async (backend) => {
    const withKeys = createEncryption(encryptionKeys);
    const state = await sealingOf(createKeyValueStore(backend, { encryption: withKeys }));
    return state === "none" ? createEncryption() : createEncryption(encryptionKeys, state === "partly");
  });
  try {
    await expectWhole(source.store);
    const encryption = createEncryption(encryptionKeys);
    const target = await openSide(to, { log }, async () => encryption);
    try {
      expectApart(source.opened, target.opened);
      await beginCopy(target.store, source.opened.name, encryption.isOn);
      const counts = { entries: 0, members: 0, thereBefore: 0, leftOut: 0 };
      for (const space of spaces) {
        await copySpace({ source, target, counts, log, tell }, space);
      }
      counts.members = await copyIndexes(source.store, target.store);
      tell(`lists: ${counts.members}`);
      await compare(source.store, target.store, counts);
      await completeCopy(target.store);
      return counts;
    } finally {
      await target.opened.backend.close();
    }
  } finally {
    await source.opened.backend.close();
  }
}

async function openSide(
  url: string,
  options: { readonly log: Log; readonly isLook?: boolean; readonly exclusive?: boolean },
  toEncryption: (backend: Backend) => Promise<Encryption>,
): Promise<Side> {
  const opened = await backendOf(url).open(url, options);
  try {
    const encryption = await toEncryption(opened.backend);
    const store = createKeyValueStore(opened.backend, { encryption });
    return { opened, store, blobs: createBlobs(opened, { store, log: options.log, encryption }) };
  } catch (error) {
    await opened.backend.close();
    throw error;
  }
}

/** Files of both stores in one folder would be removed with those of either. */
function expectApart({ blobs: from }: OpenedBackend, { blobs: to }: OpenedBackend): void {
  if (from !== "entries" && to !== "entries" && from.folder === to.folder)
    throw new ParleyError(
      "config",
      "both stores would keep their files in one folder: name an SQLite file in another folder",
    );
}

interface SpaceCopy {
  readonly source: Side;
  readonly target: Side;
  readonly counts: { entries: number; thereBefore: number; leftOut: number };
  readonly log: Log;
  readonly tell: (line: string) => void;
}

async function copySpace(copy: SpaceCopy, space: Space): Promise<void> {
  const { source, target, counts, log, tell } = copy;
  let seen = 0;
  for await (const found of inBatches(ownKeys(source.store, space))) {
    if (Math.floor((seen + found.length) / tellEvery) > Math.floor(seen / tellEvery))
      tell(`${space}: ${seen} …`);
    seen += found.length;
    const there = await target.store.hasMany(
      space,
      found.map(({ key }) => key),
    );
    const missing = found.filter((_, at) => there[at] !== true);
    counts.thereBefore += found.length - missing.length;
    const leaveOut = (key: string, error: unknown) => {
      counts.leftOut++;
      log.error({ space, key, error }, "damaged entry left out");
    };
    if (space === "blob") await copyBlobs(source, target, missing, leaveOut);
    else await copyEntries(copy, space, missing, leaveOut);
  }
  counts.entries += seen;
  tell(`${space}: ${seen}`);
}

async function copyEntries(
  { source: { store: source }, target: { store: target } }: SpaceCopy,
  space: Space,
  found: readonly ScannedKey[],
  leaveOut: (key: string, error: unknown) => void,
): Promise<void> {
  const keys = found.map(({ key }) => key);
  const values = await source.inspectMany<Json>(space, keys);
  const changes: Change[] = [];
  for (const [at, { key, expires }] of found.entries()) {
    const value = values[at];
    if (value instanceof ParleyError) leaveOut(key, value);
    // An absent one has expired.
    else if (value !== undefined)
      changes.push({ kind: "set", at: { space, key }, value, ttlMs: toTtl(expires) });
  }
  await target.write(changes);
}

/** Copies blobs one by one, because each of them may be large. */
async function copyBlobs(
  source: Side,
  target: Side,
  found: readonly ScannedKey[],
  leaveOut: (key: string, error: unknown) => void,
): Promise<void> {
  for (const { key, expires } of found) {
    let blob: StoredBlob | undefined;
    let failure: unknown = new ParleyError("store-corrupt", "its file is missing");
    try {
      blob = await source.blobs.read(key);
    } catch (error) {
      if (!(error instanceof ParleyError && error.code === "store-corrupt")) throw error;
      failure = error;
    }
    if (blob === undefined) leaveOut(key, failure);
    else await target.blobs.write(key, blob, toTtl(expires));
  }
}

function toTtl(expires: number | undefined): number | undefined {
  return expires === undefined ? undefined : Math.max(1, expires - systemClock.now());
}

/** Copies all sorted indexes. A member that is there keeps its score. Resolves to the number of members. */
async function copyIndexes(source: KeyValueStore, target: KeyValueStore): Promise<number> {
  let total = 0;
  for await (const { key: index } of source.backend.scan("indexes"))
    for await (const page of inBatches(inOrder(source, index, "lowest-first"))) {
      total += page.length;
      await target.write(page.map((member) => ({ kind: "add-member", index, ...member })));
    }
  return total;
}

/**
 * Compares the counts of both stores. Entries that expire meanwhile are in neither.
 * @throws ParleyError `store-unavailable` if they differ
 */
async function compare(source: KeyValueStore, target: KeyValueStore, counts: CopyCounts): Promise<void> {
  const [entries, members] = [await countEntries(target), await countMembers(target)];
  const least = (await countEntries(source)) - counts.leftOut;
  if (entries >= least && entries <= counts.entries && members === counts.members) return;
  throw new ParleyError(
    "store-unavailable",
    `the copy has ${entries} entries of ${least} and ${members} members of lists of ${counts.members}, so that one of the stores was changed meanwhile: stop every Parley that uses them, and run it again`,
  );
}

async function countEntries(store: KeyValueStore): Promise<number> {
  let count = 0;
  for (const space of spaces) for await (const _ of ownKeys(store, space)) count++;
  return count;
}

async function countMembers(store: KeyValueStore): Promise<number> {
  let count = 0;
  for await (const { key: index } of store.backend.scan("indexes"))
    for await (const _ of inOrder(store, index, "lowest-first")) count++;
  return count;
}

/** The keys of a space without the marks of its store. */
async function* ownKeys({ backend }: KeyValueStore, space: Space): AsyncGenerator<ScannedKey> {
  for await (const found of backend.scan(space)) if (!isOwnMark(space, found.key)) yield found;
}

async function* inBatches<T>(items: AsyncIterable<T>): AsyncGenerator<readonly T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
