import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";

/** With less, the next message with a picture may not fit. */
export const minFreeBytes = 16 * 1024 * 1024;
/** How often a write is tried while writes fail; each is synced to disk. */
const retryIntervalMs = 1000;

/** Whether the file can be written, as far as that is known without writing. */
export interface WriteState {
  /** Remembers the outcome of a write. */
  track<T>(write: Promise<T>): Promise<T>;
  /** @throws ParleyError `store-unavailable` (the last write failed, and so does `tryWrite`; the disk is nearly full) */
  check(): Promise<void>;
}

/** `tryWrite`: any durable write, tracked; rejects as writes do. Called only after one that failed. */
export function createWriteState(file: string, clock: Clock, tryWrite: () => Promise<void>): WriteState {
  let failure: unknown;
  let triedAt = -Infinity;
  return {
    async track(write) {
      try {
        const result = await write;
        failure = undefined;
        return result;
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    async check() {
      if (failure !== undefined) {
        const now = clock.monotonic();
        if (now - triedAt < retryIntervalMs) throw failure;
        triedAt = now;
        await tryWrite();
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
