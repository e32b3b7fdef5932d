import { isUtf8 } from "node:buffer";
import type { SniffedFile } from "./sniffed-file.ts";

/** Only the beginning of a file is decoded and searched; a markup preamble must end within it. */
const headBytes = 65_536;

/** C0 and C1 controls except tab, line feed, form feed, carriage return and next line. */
// oxlint-disable-next-line no-control-regex -- control characters are searched for
const controls = /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u0084\u0086-\u009f]/;

/**
 * Detects text: valid UTF-8, or UTF-16 with a byte order mark, without control characters in its first 64 kB. SVG and
 * HTML can run scripts, so they are `other`, as is text whose first element is not within the first 64 kB. `undefined`
 * for anything else. Takes time in proportion to the length. Never throws.
 */
export function sniffText(bytes: Uint8Array): SniffedFile | undefined {
  const text = decodeHead(bytes);
  if (text === undefined || controls.test(text)) return undefined;
  const head = skipPreamble(text);
  if (head === undefined || (head === "" && bytes.length > headBytes)) {
    return { kind: "other", mediaType: "application/octet-stream", extension: "bin" };
  }
  if (/^<(?:[a-z]+:)?svg[\s>/]/i.test(head)) {
    return { kind: "other", mediaType: "image/svg+xml", extension: "svg" };
  }
  if (/^<(?:!doctype\s+html|html|head|body|script)[\s>/]/i.test(head)) {
    return { kind: "other", mediaType: "text/html", extension: "html" };
  }
  return { kind: "text", mediaType: "text/plain", extension: "txt" };
}

/**
 * The beginning of the text after XML declaration, comments and SVG document types. `undefined` when one of them has no
 * end. Each character is read a bounded number of times.
 */
function skipPreamble(text: string): string | undefined {
  let at = skipSpace(text, 0);
  for (;;) {
    const end = endMarkOf(text, at);
    if (end === undefined) return text.slice(at, at + 64);
    const endAt = text.indexOf(end, at);
    if (endAt === -1) return undefined;
    at = skipSpace(text, endAt + end.length);
  }
}

const notSpace = /\S|$/g;

function skipSpace(text: string, from: number): number {
  notSpace.lastIndex = from;
  return notSpace.exec(text)?.index ?? text.length;
}

const svgDoctype = /<!doctype\s{1,100}svg[^[>]*/iy;

/** What ends the preamble's part at `at`; `undefined` when there is none. */
function endMarkOf(text: string, at: number): string | undefined {
  if (text.startsWith("<!--", at)) return "-->";
  if (text.startsWith("<?", at)) return "?>";
  svgDoctype.lastIndex = at;
  const doctype = svgDoctype.exec(text)?.[0];
  if (doctype === undefined) return undefined;
  return text.charAt(at + doctype.length) === "[" ? "]>" : ">";
}

/** Decodes the beginning of UTF-8, or of UTF-16 with a byte order mark. `undefined` for invalid bytes. */
function decodeHead(bytes: Uint8Array): string | undefined {
  const isLittle = bytes[0] === 0xff && bytes[1] === 0xfe;
  const isBig = bytes[0] === 0xfe && bytes[1] === 0xff;
  // The whole file is checked: at several gigabytes a second, unlike decoding it.
  if (!isLittle && !isBig && (bytes.subarray(0, headBytes).includes(0) || !isUtf8(bytes))) return undefined;
  const encoding = isLittle ? "utf-16le" : isBig ? "utf-16be" : "utf-8";
  try {
    const decoder = new TextDecoder(encoding, { fatal: true });
    // A character may continue past the head, but not past the file.
    return decoder.decode(bytes.subarray(0, headBytes), { stream: bytes.length > headBytes });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
