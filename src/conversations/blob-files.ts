import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rmdir, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ParleyError } from "../assistant/errors.ts";
import type { Log } from "../assistant/types.ts";
import type { BlobStore } from "./blobs.ts";
import { isBlobHash } from "./blobs.ts";
import type { KeyValueStore } from "./key-value.ts";
import { folderOf, places } from "./places.ts";

export interface BlobFilesOptions {
  readonly store: KeyValueStore;
  /** `<folder>/<conversation>/<hash>`. */
  readonly folder: string;
  readonly log: Log;
  /** Encryption at rest; without it bytes lie as they are. */
  readonly cipher?: { seal(bytes: Uint8Array): Uint8Array; open(bytes: Uint8Array): Uint8Array } | undefined;
}

interface BlobEntry {
  readonly mediaType: string;
  readonly sizeBytes: number;
}

/** Younger files than this may belong to a `put` that is still going on. */
const orphanAgeMs = 60 * 60 * 1000;

/** Blobs as files beside the database: for one machine, where base64 in the store would cost ten times as much. */
export function createBlobFiles({ store, folder, log, cipher }: BlobFilesOptions): BlobStore {
  const fileOf = (conversationId: string, hash: string) => join(folder, folderOf(conversationId), hash);
  return {
    async put(conversationId, hash, { bytes, mediaType }, ttlMs) {
      const at = places.blob(conversationId, hash);
      const entry: BlobEntry = { mediaType, sizeBytes: bytes.byteLength };
      const file = fileOf(conversationId, hash);
      await guard(async () => {
        if (!(await isThere(file)))
          await writeDurably(file, cipher === undefined ? bytes : cipher.seal(bytes));
      });
      await store.write([{ kind: "set", at, value: entry, ttlMs }]);
    },
    async get(conversationId, hash) {
      if (!isBlobHash(hash)) return undefined;
      const at = places.blob(conversationId, hash);
      const entry = await store.get<BlobEntry>(at.space, at.key);
      if (entry === undefined) return undefined;
      const kept = await guard(() => readIfThere(fileOf(conversationId, hash)));
      if (kept === undefined) {
        log.error({ hash }, "the file of a blob is missing");
        return undefined;
      }
      const bytes = cipher === undefined ? kept : cipher.open(kept);
      if (createHash("sha256").update(bytes).digest("hex") !== hash) {
        throw new ParleyError("store-corrupt", `the blob ${hash} is damaged: restore it from a backup`);
      }
      return { bytes, mediaType: entry.mediaType };
    },
    async delete(conversationId, hashes) {
      // Files first: what a crash leaves are entries without a file, which the next run deletes again.
      await guard(async () => {
        for (const hash of hashes.filter(isBlobHash)) await unlinkIfThere(fileOf(conversationId, hash));
        await removeIfEmpty(join(folder, folderOf(conversationId)));
      });
      await store.write(hashes.map((hash) => ({ kind: "delete", at: places.blob(conversationId, hash) })));
    },
    async sweep(now) {
      for (const name of await guard(() => namesIn(folder))) {
        const hashes = await guard(() => namesIn(join(folder, name)));
        const named = await store.hasMany(
          "blob",
          hashes.map((hash) => `${name}/${hash}`),
        );
        for (const [index, hash] of hashes.entries()) {
          if (named[index] === true) continue;
          const file = join(folder, name, hash);
          await guard(async () => {
            if (now - (await modifiedAt(file, now)) >= orphanAgeMs) await unlinkIfThere(file);
          });
        }
        await guard(() => removeIfEmpty(join(folder, name)));
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
    await unlinkIfThere(temporary);
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

async function isThere(file: string): Promise<boolean> {
  return (await unlessMissing(stat(file))) !== undefined;
}

async function readIfThere(file: string): Promise<Uint8Array | undefined> {
  return unlessMissing(readFile(file));
}

async function unlinkIfThere(file: string): Promise<void> {
  await unlessMissing(unlink(file));
}

async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

async function modifiedAt(file: string, otherwise: number): Promise<number> {
  return (await unlessMissing(stat(file)))?.mtimeMs ?? otherwise;
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
