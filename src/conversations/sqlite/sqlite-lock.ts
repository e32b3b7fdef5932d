import { DatabaseSync } from "node:sqlite";
import { ParleyError } from "../../core/errors.ts";
import { createPrivateFile } from "./private-file.ts";

/**
 * Locks `<file>-lock` for as long as this process lives; returns the function that unlocks it. The operating system
 * drops the lock with the process, so it never goes stale.
 * @throws ParleyError `store-unavailable` when another process has it
 */
export function lockStore(file: string): () => void {
  const lockFile = `${file}-lock`;
  createPrivateFile(lockFile);
  const holder = new DatabaseSync(lockFile, { timeout: 0 });
  try {
    holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    holder.close();
    throw new ParleyError(
      "store-unavailable",
      `the store ${file} is in use by another Parley: stop that one, give this one a file of its own, or use a server for several`,
      { detail: { file }, cause: error },
    );
  }
  return () => {
    if (holder.isOpen) holder.close();
  };
}
