import { createHash } from "node:crypto";

/** Longest name that is stored as it is, in bytes: an index of Postgres takes rows of 2,704 bytes, of two names. */
const maxBytes = 1000;
const prefixChars = 200;
/** Stands before what Postgres' text cannot hold, and before a digest. */
const mark = "\u0001";

/** A key, member or name of an index as Postgres stores it. */
export interface StoredName {
  /** At most 1,000 bytes; different for different names. */
  readonly name: string;
  /** What {@link fromStored} turns into the name, where `name` is only a digest of it. */
  readonly original: string | undefined;
}

/** Names may hold any Unicode, NUL included, and 16,384 characters. */
export function toStored(name: string): StoredName {
  const escaped = escape(name);
  if (Buffer.byteLength(escaped) <= maxBytes) return { name: escaped, original: undefined };
  const digest = createHash("sha256").update(name).digest("hex");
  return { name: `${escaped.slice(0, prefixChars).toWellFormed()}${mark}d${digest}`, original: escaped };
}

/** The name as it was given to {@link toStored}. */
export function fromStored(stored: string): string {
  return stored.includes(mark) ? stored.replaceAll(`${mark}0`, "\0").replaceAll(`${mark}1`, mark) : stored;
}

function escape(name: string): string {
  return name.includes("\0") || name.includes(mark)
    ? name.replaceAll(mark, `${mark}1`).replaceAll("\0", `${mark}0`)
    : name;
}
