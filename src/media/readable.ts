import type { Sniffed } from "./sniff.ts";

/** The sources of pages and drawings are quoted as text, never shown or run. */
const sourceTypes: ReadonlySet<string> = new Set(["text/html", "image/svg+xml"]);

/** Whether a file is the source of a page or drawing, which is read as text. */
export function isSource(file: Sniffed): boolean {
  return file.kind !== "empty" && sourceTypes.has(file.mediaType);
}

/** Whether Parley reads files of this kind. They may still turn out to be damaged, encrypted or empty. */
export function isReadable(file: Sniffed): boolean {
  return file.kind !== "other" || isSource(file);
}
