import { randomUUID, createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rmdir, stat, unlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ParleyError } from "../core/errors.ts";
import type { StoredBlob } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { systemClock } from "../support/clock.ts";
import { unlessMissing } from "../support/unless-missing.ts";
import type { OpenedBackend } from "./backend.ts";
import type { Encryption } from "./encryption.ts";
import { type KeyValueStore, writeBatches } from "./key-value.ts";
import { entryAt, folderOf } from "./keys.ts";

/** Bytes of a conversation under their SHA-256 in lower-case hex. Failures are ParleyErrors. */
export interface BlobStore {
  /** Stores bytes durably. Storing the same bytes again extends their time to live. */
  put(conversationId: string, hash: string, blob: StoredBlob, ttlMs: number | undefined): Promise<void>;
  /** @throws ParleyError `store-corrupt` if the bytes are not what was stored */
  get(conversationId: string, hash: string): Promise<StoredBlob | undefined>;
  delete(conversationId: string, hashes: readonly string[]): Promise<void>;
  /** Removes bytes without an entry, which crashes and expired entries leave. `now` is in Unix ms. */
  sweep(now: number): Promise<void>;
  /** Reads a blob by the key of its entry, for a copy. */
  read(key: string): Promise<StoredBlob | undefined>;
  /** Stores a blob under the key of its entry. */
  write(key: string, blob: StoredBlob, ttlMs: number | undefined): Promise<void>;
}

/** The hash in the key of a blob's entry. */
function hashOf(key: string): string {
  return key.slice(key.indexOf("/") + 1);
}

/** Whether a string can name a blob. Anything else must never become part of a path. */
function isBlobHash(hash: string): boolean {
  return /^[0-9a-f]{64}$/.test(hash);
}

/** @throws ParleyError `store-corrupt` if the bytes do not have this hash */
function checkBlobHash(bytes: Uint8Array, hash: string): void {
  if (createHash("sha256").update(bytes).digest("hex") !== hash)
    throw new ParleyError("store-corrupt", `the blob ${hash} is damaged: restore it from a backup`);
}

/** The options of blob files. */
interface BlobFilesOptions {
  readonly store: KeyValueStore;
  /** The root of `<folder>/<conversation>/<hash>`. */
  readonly folder: string;
  readonly log: Log;
  readonly encryption: Encryption;
}

interface BlobEntry {
  readonly mediaType: string;
  readonly sizeBytes: number;
}

/** The suffix of an encrypted file. */
const sealedSuffix = ".enc";

/** A younger file may belong to a `put` in progress. */
const orphanAgeMs = 60 * 60 * 1000;

/** Creates the blobs of an open backend. */
export function createBlobs(
  { blobs }: Pick<OpenedBackend, "blobs">,
  options: Omit<BlobFilesOptions, "folder">,
): BlobStore {
  return blobs === "entries"
    ? createBlobEntries(options.store)
    : createBlobFiles({ ...options, folder: blobs.folder });
}

/** Stores blobs as files on one machine, because base64 in the store would cost ten times as much. */
function createBlobFiles({ store, folder, log, encryption }: BlobFilesOptions): BlobStore {
  const plainFileOf = (key: string) => join(folder, key);
  const sealedFileOf = (key: string) => plainFileOf(key) + sealedSuffix;

  /** Writes the file if it is missing, and touches an existing one, so that the sweep treats it as new. */
  const ensure = async (key: string, bytes: Uint8Array) => {
    const file = (encryption.isOn ? sealedFileOf : plainFileOf)(key);
    const now = new Date(systemClock.now());
    const isThere = await unlessMissing(utimes(file, now, now).then(() => true));
    if (isThere === true) return;
    await writeDurably(file, encryption.files.seal({ space: "blob", key }, bytes));
  };
  const readFileOf = async (key: string) => {
    const sealed = await unlessMissing(readFile(sealedFileOf(key)));
    if (sealed !== undefined) return encryption.files.open({ space: "blob", key }, sealed);
    const plain = await unlessMissing(readFile(plainFileOf(key)));
    if (plain !== undefined && encryption.isOn && !encryption.acceptsPlain)
      throw new ParleyError("store-corrupt", "a blob that must be encrypted is not", {
        detail: { hash: hashOf(key) },
      });
    return plain;
  };
  const read = async (key: string) => {
    const hash = hashOf(key);
    if (!isBlobHash(hash)) return undefined;
    const entry = await store.get<BlobEntry>("blob", key);
    if (entry === undefined) return undefined;
    const bytes = await guard(() => readFileOf(key));
    if (bytes === undefined) {
      log.error({ hash }, "blob file missing");
      return undefined;
    }
    checkBlobHash(bytes, hash);
    return { bytes, mediaType: entry.mediaType };
  };
  const write: BlobStore["write"] = async (key, { bytes, mediaType }, ttlMs) => {
    const entry: BlobEntry = { mediaType, sizeBytes: bytes.byteLength };
    await guard(() => ensure(key, bytes));
    await store.write([{ kind: "set", at: { space: "blob", key }, value: entry, ttlMs }]);
    // A sweep may have just removed an old file of these bytes. From now on it finds the entry.
    await guard(() => ensure(key, bytes));
  };

  return {
    read,
    write,
    put: (conversationId, hash, blob, ttlMs) => write(entryAt.blob(conversationId, hash).key, blob, ttlMs),
    get: (conversationId, hash) => read(entryAt.blob(conversationId, hash).key),
    async delete(conversationId, hashes) {
      // Files are deleted first. A crash then leaves entries without a file, which the next run deletes.
      await guard(async () => {
        for (const hash of hashes.filter(isBlobHash)) {
          const { key } = entryAt.blob(conversationId, hash);
          await unlessMissing(unlink(sealedFileOf(key)));
          await unlessMissing(unlink(plainFileOf(key)));
        }
        await removeIfEmpty(join(folder, folderOf(conversationId)));
      });
      await deleteEntries(store, conversationId, hashes);
    },
    async sweep(now) {
      for (const name of await guard(() => namesIn(folder))) {
        const files = await guard(() => namesIn(join(folder, name)));
        const named = await store.hasMany(
          "blob",
          files.map((file) => `${name}/${file.replace(sealedSuffix, "")}`),
        );
        const orphans = files.filter((_, index) => named[index] !== true);
        await guard(async () => {
          for (const file of orphans) await unlinkIfOld(join(folder, name, file), now);
          await removeIfEmpty(join(folder, name));
        });
      }
    },
  };
}

async function guard<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new ParleyError("store-unavailable", `a blob could not be read or written (${reason})`, {
      detail: { reason },
      cause: error,
    });
  }
}

/** Writes atomically and durably, even through a power cut: bytes, then name, then the folder of the name. */
async function writeDurably(file: string, bytes: Uint8Array): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, `${randomUUID()}.tmp`);
  try {
    const handle = await open(temporary, "wx", 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, file);
  } catch (error) {
    await unlessMissing(unlink(temporary));
    throw error;
  }
  await syncFolder(folder);
  await syncFolder(dirname(folder));
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

async function unlinkIfOld(file: string, now: number): Promise<void> {
  const found = await unlessMissing(stat(file));
  if (found !== undefined && now - found.mtimeMs >= orphanAgeMs) await unlessMissing(unlink(file));
}

async function removeIfEmpty(folder: string): Promise<void> {
  if ((await namesIn(folder)).length > 0) return;
  try {
    await unlessMissing(rmdir(folder));
  } catch (error) {
    // A put has used the folder in the meantime.
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}

interface ManagedBlob {
  readonly mediaType: string;
  /** It is absent where blobs were files. */
  readonly base64?: string;
}

/** Stores blobs as entries, for several machines without a shared disk. */
export function createBlobEntries(store: KeyValueStore): BlobStore {
  const read = async (key: string) => {
    const hash = hashOf(key);
    if (!isBlobHash(hash)) return undefined;
    const entry = await store.get<ManagedBlob>("blob", key);
    if (entry === undefined) return undefined;
    const bytes = Buffer.from(entry.base64 ?? "", "base64");
    checkBlobHash(bytes, hash);
    return { bytes, mediaType: entry.mediaType };
  };
  const write: BlobStore["write"] = async (key, { bytes, mediaType }, ttlMs) => {
    const value: ManagedBlob = { mediaType, base64: toBase64(bytes) };
    await store.write([{ kind: "set", at: { space: "blob", key }, value, ttlMs }]);
  };
  return {
    read,
    write,
    put: (conversationId, hash, blob, ttlMs) => write(entryAt.blob(conversationId, hash).key, blob, ttlMs),
    get: (conversationId, hash) => read(entryAt.blob(conversationId, hash).key),
    delete: (conversationId, hashes) => deleteEntries(store, conversationId, hashes),
    async sweep() {
      // The entries expire by themselves.
    },
  };
}

async function deleteEntries(
  store: KeyValueStore,
  conversationId: string,
  hashes: readonly string[],
): Promise<void> {
  await writeBatches(
    store,
    hashes.map((hash) => ({ kind: "delete", at: entryAt.blob(conversationId, hash) })),
  );
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
