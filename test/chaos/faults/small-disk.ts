import { execFile } from "node:child_process";
import { mkdtemp, open, rm, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const sizeMb = 48;

/** A folder on its own file system, which can be filled. */
export interface SmallDisk {
  readonly folder: string;
  /** Writes until there is no space left. */
  fill(): Promise<void>;
  free(): Promise<void>;
  remove(): Promise<void>;
}

/** Mounts a file system in memory. Returns `undefined` where this user or system cannot. */
export async function mountSmallDisk(): Promise<SmallDisk | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "parley-disk-"));
  try {
    await run("mount", ["-t", "tmpfs", "-o", `size=${sizeMb}m`, "tmpfs", folder]);
  } catch {
    // This is a container without the capability.
    await rm(folder, { recursive: true });
    return undefined;
  }
  const filler = join(folder, "filler");
  return {
    folder,
    async fill() {
      const file = await open(filler, "w");
      try {
        for (const bytes of [1024 * 1024, 4096])
          while ((await writeIfSpace(file, bytes)) === "written") continue;
      } finally {
        await file.close();
      }
    },
    free: () => unlink(filler),
    async remove() {
      await run("umount", ["-l", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function writeIfSpace(
  file: Awaited<ReturnType<typeof open>>,
  bytes: number,
): Promise<"written" | "full"> {
  try {
    const { bytesWritten } = await file.write(Buffer.alloc(bytes));
    return bytesWritten < bytes ? "full" : "written";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return "full";
    throw error;
  }
}
