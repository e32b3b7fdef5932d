import { constants, type Dirent } from "node:fs";
import { copyFile, mkdir, readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { ParleyError } from "../../core/errors.ts";
import { unlessMissing } from "../../support/unless-missing.ts";

/** What a backup copies, and where to. */
export interface BackupOptions {
  /** Copies the database into `target`. */
  readonly copyDatabase: () => Promise<void>;
  /** Folder of the blobs. */
  readonly blobs: string;
  /** A new or empty folder. */
  readonly target: string;
}

/**
 * Copies database and blobs into a folder. The database comes first: every blob it names was on disk before, and
 * blobs never change.
 * @throws ParleyError `config` (the folder is not empty), `store-unavailable`
 */
export async function backUpFiles({ copyDatabase, blobs, target }: BackupOptions): Promise<void> {
  try {
    await mkdir(target, { recursive: true, mode: 0o700 });
    if ((await readdir(target)).length > 0)
      throw new ParleyError("config", `the folder ${target} is not empty: name a new one for the backup`);
    await copyDatabase();
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
  for (const entry of await entriesOf(from)) {
    if (!entry.isDirectory()) continue;
    const [source, copy] = [join(from, entry.name), join(to, entry.name)];
    await mkdir(copy, { recursive: true, mode: 0o700 });
    for (const blob of await entriesOf(source)) {
      // Unfinished files; their database entry is written after them.
      if (blob.name.endsWith(".tmp")) continue;
      await copyUnlessMissing(join(source, blob.name), join(copy, blob.name));
    }
  }
}

async function entriesOf(folder: string): Promise<readonly Dirent[]> {
  return (await unlessMissing(readdir(folder, { withFileTypes: true }))) ?? [];
}

/** What expires or is erased during the backup is left out. */
async function copyUnlessMissing(from: string, to: string): Promise<void> {
  // Shares the bytes if the file system supports it.
  await unlessMissing(copyFile(from, to, constants.COPYFILE_FICLONE));
}
