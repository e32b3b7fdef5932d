import { crc32 } from "node:zlib";
import { ParleyError } from "../core/errors.ts";
import type { EntryAddress } from "./backend.ts";

/**
 * A stored value that is not encrypted carries a checksum over its address and its text, as a second field of its
 * JSON. Versions before ignore the field, and values that they wrote have none. @see docs/decisions/lost-and-damaged-data.md
 */
const suffix = /^,"crc":"([0-9a-f]{8})"\}$/;
const suffixChars = 18;

/** `text`: JSON of an object with one field or more. */
export function addChecksum(at: EntryAddress, text: string): string {
  return `${text.slice(0, -1)},"crc":"${checksumOf(at, text)}"}`;
}

/**
 * The text without its checksum; as it is when it has none.
 * @throws ParleyError `store-corrupt` when the text was changed, or stored under another address
 */
export function checkChecksum(at: EntryAddress, stored: string): string {
  const checksum = suffix.exec(stored.slice(-suffixChars))?.[1];
  if (checksum === undefined) return stored;
  const text = `${stored.slice(0, -suffixChars)}}`;
  if (checksum === checksumOf(at, text)) return text;
  throw new ParleyError("store-corrupt", "a stored value does not match its checksum", {
    detail: { space: at.space },
  });
}

function checksumOf({ space, key }: EntryAddress, text: string): string {
  return crc32(`${space}\0${key}\0${text}`).toString(16).padStart(8, "0");
}
