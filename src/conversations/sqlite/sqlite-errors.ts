import { ParleyError } from "../../core/errors.ts";

/** Result codes of SQLite. @see https://www.sqlite.org/rescode.html */
const codes = {
  busy: 5,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cantOpen: 14,
  notADatabase: 26,
} as const;

/**
 * An error of SQLite as a ParleyError whose message says what to do: `store-corrupt` for a damaged file,
 * `store-unavailable` for everything else. ParleyErrors pass through.
 */
export function toSqliteStoreError(error: unknown, file: string): ParleyError {
  if (error instanceof ParleyError) return error;
  const code = resultCode(error);
  const detail = { file, ...(code === undefined ? {} : { sqlite: code }) };
  const toError = (errorCode: "store-unavailable" | "store-corrupt", problem: string) =>
    new ParleyError(errorCode, `the store ${file} ${problem}`, { detail, cause: error });
  switch (code) {
    case codes.notADatabase:
      return toError(
        "store-corrupt",
        "is not an SQLite file: move it away, or set STORE_URL to another file",
      );
    case codes.corrupt:
      return toError("store-corrupt", "is damaged: stop, keep a copy of it, and restore a backup");
    case codes.full:
      return toError("store-unavailable", "cannot grow: the disk is full or a quota is reached");
    case codes.readOnly:
      return toError(
        "store-unavailable",
        "cannot be written: give this user write permission to it and its folder",
      );
    case codes.cantOpen:
      return toError(
        "store-unavailable",
        "cannot be opened: check the path and the permissions of its folder",
      );
    case codes.busy:
      return toError("store-unavailable", "is locked by another program");
    case codes.ioError:
      return toError("store-unavailable", "cannot be read or written: the disk reports an error or is full");
    case undefined:
    default:
      return toError("store-unavailable", "failed");
  }
}

/** The primary result code; extended ones carry it in their low byte. */
function resultCode(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}
