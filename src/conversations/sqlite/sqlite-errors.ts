import { ParleyError } from "../../core/errors.ts";

/** What is wrong and what to do, by result code. @see https://www.sqlite.org/rescode.html */
const problems: Readonly<Record<number, string>> = {
  5: "is locked by another program",
  8: "cannot be written: give this user write permission to it and its folder",
  10: "cannot be read or written: the disk reports an error or is full",
  11: "is damaged: stop, keep a copy of it, and restore a backup",
  13: "cannot grow: the disk is full or a quota is reached",
  14: "cannot be opened: check the path and the permissions of its folder",
  26: "is not an SQLite file: move it away, or set STORE_URL to another file",
};
/** The same for errors of the system, which come from waiting for the disk. */
const systemCodes: Readonly<Record<string, number>> = { EIO: 10, ENOSPC: 13, EDQUOT: 13, EROFS: 8 };
/** SQLITE_CORRUPT and SQLITE_NOTADB. */
const corruptCodes = new Set([11, 26]);

/**
 * An error of SQLite as a ParleyError whose message says what to do: `store-corrupt` for a damaged file,
 * `store-unavailable` for everything else. ParleyErrors pass through.
 */
export function toSqliteStoreError(error: unknown, file: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = resultCode(error);
  const problem = (code === undefined ? undefined : problems[code]) ?? "failed";
  return new ParleyError(
    code !== undefined && corruptCodes.has(code) ? "store-corrupt" : "store-unavailable",
    `the store ${file} ${problem}`,
    { detail: { file, problem, ...(code === undefined ? {} : { sqlite: code }) }, cause: error },
  );
}

/** Whether another write could succeed: what was to be written is at fault, not the file or its disk. */
export function isOfOneWrite(error: unknown): boolean {
  const code = resultCode(error);
  return code === undefined || problems[code] === undefined;
}

/** The primary result code; extended ones carry it in their low byte. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if (!("errcode" in error)) return "code" in error ? systemCodes[String(error.code)] : undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}
