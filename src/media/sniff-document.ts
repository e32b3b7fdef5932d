import { hasBytes, latin1 } from "./bytes.ts";
import type { SniffedFile } from "./sniffed-file.ts";

/** An archive's list of names is at its end, and its first entries at its beginning. */
const headBytes = 8192;
const tailBytes = 65_536;

const openXml = "application/vnd.openxmlformats-officedocument";
const openDocument = "application/vnd.oasis.opendocument";

/** An office document, by an entry of its archive. */
const openXmlParts = [
  ["word/document", `${openXml}.wordprocessingml.document`, "docx"],
  ["xl/workbook.xml", `${openXml}.spreadsheetml.sheet`, "xlsx"],
  ["ppt/presentation.xml", `${openXml}.presentationml.presentation`, "pptx"],
] as const;

/** Names in the directory of a compound file, in UTF-16, and what such a file is. */
const compoundParts = [
  ["EncryptedPackage", "application/x-encrypted-office", "docx"],
  ["WordDocument", "application/msword", "doc"],
  ["PowerPoint Document", "application/vnd.ms-powerpoint", "ppt"],
  ["Workbook", "application/vnd.ms-excel", "xls"],
  ["Book", "application/vnd.ms-excel", "xls"],
] as const;

/** Detects PDF, office documents and archives. */
export function sniffDocument(bytes: Uint8Array): SniffedFile | undefined {
  if (latin1(bytes, 0, 5) === "%PDF-") return document("application/pdf", "pdf");
  if (hasBytes(bytes, 0, [0x50, 0x4b, 3, 4]) || hasBytes(bytes, 0, [0x50, 0x4b, 5, 6]))
    return sniffZip(bytes);
  if (hasBytes(bytes, 0, [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])) return sniffCompound(bytes);
  if (hasBytes(bytes, 0, [0x1f, 0x8b, 8])) return other("application/gzip", "gz");
  return undefined;
}

function sniffZip(bytes: Uint8Array): SniffedFile {
  const head = Buffer.from(bytes.subarray(0, headBytes)).toString("latin1");
  // The first entry of an OpenDocument file is its type, not compressed.
  const [, kind] =
    /^mimetypeapplication\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/.exec(head.slice(30)) ??
    [];
  if (kind !== undefined) {
    const extension = { text: "odt", spreadsheet: "ods", presentation: "odp" }[kind] ?? "odt";
    return document(`${openDocument}.${kind}`, extension);
  }
  const names = head + Buffer.from(bytes.subarray(-tailBytes)).toString("latin1");
  const found = openXmlParts.find(([part]) => names.includes(part));
  if (found !== undefined && names.includes("[Content_Types].xml")) return document(found[1], found[2]);
  return other("application/zip", "zip");
}

/** The container of the older Office formats, and of encrypted documents of the newer ones. */
function sniffCompound(bytes: Uint8Array): SniffedFile {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = compoundParts.find(([name]) => whole.includes(Buffer.from(`${name}\0`, "utf16le")));
  return found === undefined ? other("application/x-ole-storage", "bin") : other(found[1], found[2]);
}

function document(mediaType: string, extension: string): SniffedFile {
  return { kind: "document", mediaType, extension };
}

function other(mediaType: string, extension: string): SniffedFile {
  return { kind: "other", mediaType, extension };
}
