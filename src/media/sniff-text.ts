import type { SniffedFile } from "./sniffed-file.ts";

/** Most binary files have a zero byte near the start; only others are decoded as a whole. */
const probeBytes = 4096;

/** C0 and C1 controls except tab, line feed, form feed, carriage return and next line. */
// oxlint-disable-next-line no-control-regex -- control characters are searched for
const controls = /[\u0000-\u0008\u000b\u000e-\u001f\u007f-\u0084\u0086-\u009f]/;

/**
 * Detects text: valid UTF-8, or UTF-16 with a byte order mark, without control characters. SVG and HTML can run
 * scripts, so they are `other`. `undefined` for anything else. Never throws.
 */
export function sniffText(bytes: Uint8Array): SniffedFile | undefined {
  const text = decodeText(bytes);
  if (text === undefined || controls.test(text)) return undefined;
  const head = skipPreamble(text);
  if (/^<(?:[a-z]+:)?svg[\s>/]/i.test(head)) {
    return { kind: "other", mediaType: "image/svg+xml", extension: "svg" };
  }
  if (/^<(?:!doctype\s+html|html|head|body|script)[\s>/]/i.test(head)) {
    return { kind: "other", mediaType: "text/html", extension: "html" };
  }
  return { kind: "text", mediaType: "text/plain", extension: "txt" };
}

/** The beginning of the text after XML declaration, comments and an SVG document type. */
function skipPreamble(text: string): string {
  let rest = text.trimStart();
  for (;;) {
    const end = rest.startsWith("<!--") ? "-->" : rest.startsWith("<?") ? "?>" : endOfSvgDoctype(rest);
    const at = end === undefined ? -1 : rest.indexOf(end);
    if (end === undefined || at === -1) return rest.slice(0, 64);
    rest = rest.slice(at + end.length).trimStart();
  }
}

function endOfSvgDoctype(text: string): string | undefined {
  if (!/^<!doctype\s+svg/i.test(text)) return undefined;
  const subset = text.indexOf("[");
  return subset !== -1 && subset < text.indexOf(">") ? "]>" : ">";
}

/** Decodes UTF-8, or UTF-16 with a byte order mark. `undefined` for invalid bytes. */
function decodeText(bytes: Uint8Array): string | undefined {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe
      ? "utf-16le"
      : bytes[0] === 0xfe && bytes[1] === 0xff
        ? "utf-16be"
        : "utf-8";
  if (encoding === "utf-8" && bytes.subarray(0, probeBytes).includes(0)) return undefined;
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
