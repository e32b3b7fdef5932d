import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { ParleyError } from "../../core/errors.ts";

/** With less, the next message with a picture may not fit. */
export const minFreeBytes = 16 * 1024 * 1024;
/** How often a write is tried while writes fail; each is synced to disk. */
const retryIntervalMs = 1000;

/** Whether the file can be written, as far as that is known without writing. */
export interface WriteState {
  /** Runs a write and remembers its outcome. */
  track<T>(write: () => T): T;
  /** @throws ParleyError `store-unavailable` (the last write failed, and so does `tryWrite`; the disk is nearly full) */
  check(): Promise<void>;
}

/** `tryWrite`: any durable write; throws as writes do. Called only after one that failed. */
export function createWriteState(file: string, tryWrite: () => void): WriteState {
  let failure: unknown;
  let triedAt = 0;
  const track = <T>(write: () => T): T => {
    try {
      const result = write();
      failure = undefined;
      return result;
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  return {
    track,
    async check() {
      if (failure !== undefined) {
        const now = performance.now();
        if (now - triedAt < retryIntervalMs) throw failure;
        triedAt = now;
        track(tryWrite);
      }
      const { bavail, bsize } = await statfs(dirname(file));
      const freeBytes = bavail * bsize;
      if (freeBytes >= minFreeBytes) return;
      const problem = `is nearly out of disk space: ${Math.floor(freeBytes / 1024 / 1024)} MiB are free, fewer than ${minFreeBytes / 1024 / 1024}`;
      throw new ParleyError("store-unavailable", `the store ${file} ${problem}`, {
        detail: { file, problem },
      });
    },
  };
}
