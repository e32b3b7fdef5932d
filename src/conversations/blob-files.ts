import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rmdir, stat, unlink, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";
import { type BlobStore, isBlobHash } from "./blobs.ts";
import type { Encryption } from "./encryption.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt, folderOf } from "./store-keys.ts";

export interface BlobFilesOptions {
  readonly store: KeyValueStore;
  /** `<folder>/<conversation>/<hash>`. */
  readonly folder: string;
  readonly log: Log;
  readonly encryption: Encryption;
}

interface BlobEntry {
  readonly mediaType: string;
  readonly sizeBytes: number;
}

/** Of files that are encrypted. */
const sealedSuffix = ".enc";

/** Younger files than this may belong to a `put` that is still going on. */
const orphanAgeMs = 60 * 60 * 1000;

/** Blobs as files beside the database: for one machine, where base64 in the store would cost ten times as much. */
export function createBlobFiles({ store, folder, log, encryption }: BlobFilesOptions): BlobStore {
  const plainFileOf = (conversationId: string, hash: string) => join(folder, folderOf(conversationId), hash);
  const sealedFileOf = (conversationId: string, hash: string) =>
    plainFileOf(conversationId, hash) + sealedSuffix;

  /** Writes the file as it is to be now, unless it is there; what is there is made too young to be swept away. */
  const ensure = async (conversationId: string, hash: string, bytes: Uint8Array) => {
    const [file, content] = encryption.isOn
      ? [sealedFileOf(conversationId, hash), () => encryption.seal(bytes)]
      : [plainFileOf(conversationId, hash), () => bytes];
    const now = new Date();
    const isThere = await unlessMissing(utimes(file, now, now).then(() => true));
    if (isThere !== true) await writeDurably(file, content());
  };
  const read = async (conversationId: string, hash: string) => {
    const sealed = await unlessMissing(readFile(sealedFileOf(conversationId, hash)));
    return sealed === undefined
      ? unlessMissing(readFile(plainFileOf(conversationId, hash)))
      : encryption.unseal(sealed);
  };

  return {
    async put(conversationId, hash, { bytes, mediaType }, ttlMs) {
      const entry: BlobEntry = { mediaType, sizeBytes: bytes.byteLength };
      await guard(() => ensure(conversationId, hash, bytes));
      await store.write([{ kind: "set", at: entryAt.blob(conversationId, hash), value: entry, ttlMs }]);
      // A sweep may have been about to remove an old file of these bytes; it cannot any more.
      await guard(() => ensure(conversationId, hash, bytes));
    },
    async get(conversationId, hash) {
      if (!isBlobHash(hash)) return undefined;
      const at = entryAt.blob(conversationId, hash);
      const entry = await store.get<BlobEntry>(at.space, at.key);
      if (entry === undefined) return undefined;
      const bytes = await guard(() => read(conversationId, hash));
      if (bytes === undefined) {
        log.error({ hash }, "the file of a blob is missing");
        return undefined;
      }
      if (createHash("sha256").update(bytes).digest("hex") !== hash) {
        throw new ParleyError("store-corrupt", `the blob ${hash} is damaged: restore it from a backup`);
      }
      return { bytes, mediaType: entry.mediaType };
    },
    async delete(conversationId, hashes) {
      // Files first: what a crash leaves are entries without a file, which the next run deletes again.
      await guard(async () => {
        for (const hash of hashes.filter(isBlobHash)) {
          await unlessMissing(unlink(sealedFileOf(conversationId, hash)));
          await unlessMissing(unlink(plainFileOf(conversationId, hash)));
        }
        await removeIfEmpty(join(folder, folderOf(conversationId)));
      });
      await store.write(hashes.map((hash) => ({ kind: "delete", at: entryAt.blob(conversationId, hash) })));
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
    async reencrypt() {
      let changed = 0;
      if (!encryption.isOn) return changed;
      for (const name of await guard(() => namesIn(folder))) {
        for (const file of await guard(() => namesIn(join(folder, name)))) {
          if (await guard(() => reseal(join(folder, name), file, encryption))) changed++;
        }
      }
      return changed;
    },
  };
}

/** Brings one file under the newest key; answers whether it was not. */
async function reseal(folder: string, name: string, encryption: Encryption): Promise<boolean> {
  const hash = name.replace(sealedSuffix, "");
  const kept = isBlobHash(hash) ? await unlessMissing(readFile(join(folder, name))) : undefined;
  if (kept === undefined) return false;
  const isSealed = name.endsWith(sealedSuffix);
  if (isSealed && encryption.isSealedWithNewest(kept)) return false;
  await writeDurably(
    join(folder, hash + sealedSuffix),
    encryption.seal(isSealed ? encryption.unseal(kept) : kept),
  );
  if (!isSealed) await unlessMissing(unlink(join(folder, name)));
  return true;
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

/** Whole or not there at all, also after a power cut: bytes, then name, then the folder that holds the name. */
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

/** `undefined` where the file or folder is not there; every other failure throws. */
async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
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
    // A put came in between: the folder is in use again.
    if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
  }
}
