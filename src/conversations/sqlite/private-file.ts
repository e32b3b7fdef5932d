import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { ParleyError } from "../../core/errors.ts";

/**
 * Creates a file and its folder, readable to their owner only, unless they exist. SQLite gives its `-wal` and
 * `-shm` files the permissions of the database.
 * @throws ParleyError `store-unavailable`
 */
export function createPrivateFile(file: string): void {
  const folder = dirname(file);
  try {
    if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  } catch (cause) {
    const reason = (cause as NodeJS.ErrnoException).code ?? "unknown";
    throw new ParleyError(
      "store-unavailable",
      `the store ${file} cannot be created (${reason}): check the path and the permissions of its folder`,
      { detail: { file, reason }, cause },
    );
  }
}
