import { constants } from "node:fs";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { ParleyError } from "../core/errors.ts";
import type { SqliteBackend } from "./sqlite/sqlite-backend.ts";

/**
 * Copies database and blobs into a folder that must not hold a backup yet. The database first: every blob it
 * names was on disk before, and blobs never change.
 */
export async function backupFiles(
  backend: SqliteBackend,
  { file, blobs, target }: { readonly file: string; readonly blobs: string; readonly target: string },
): Promise<void> {
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
    if ((await readdir(target)).length > 0)
      throw new ParleyError("config", `the folder ${target} is not empty: name a new one for the backup`);
    await backend.backup(join(target, basename(file)));
    await copyBlobs(blobs, join(target, basename(blobs)));
  } catch (error) {
    if (error instanceof ParleyError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? "unknown";
    throw new ParleyError("store-unavailable", `the backup into ${target} failed (${reason})`, {
      detail: { folder: target, reason },
      cause: error,
    });
  }
}

async function copyBlobs(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 });
  for (const entry of await readdirUnlessMissing(from)) {
    if (!entry.isDirectory()) continue;
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    await mkdir(copy, { recursive: true, mode: 0o700 });
    for (const blob of await readdirUnlessMissing(source)) {
      // Files being written; their database entry comes after them.
      if (blob.name.endsWith(".tmp")) continue;
      await copyUnlessMissing(join(source, blob.name), join(copy, blob.name));
    }
  }
}

async function readdirUnlessMissing(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** What expires or is forgotten during the backup is not in it. */
async function copyUnlessMissing(from: string, to: string): Promise<void> {
  try {
    // Shares the bytes where the file system can.
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
