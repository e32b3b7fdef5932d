import type { IncomingMessage, ServerResponse } from "node:http";
import { sniff } from "../../media/sniff.ts";
import { commonHeaders, inertPolicy } from "./http.ts";

/** Media types served inline. Everything else (HTML, SVG, PDF, …) is served as a download. */
const inlineTypes = new Set([
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "audio/ogg",
  "audio/mpeg",
  "audio/mp4",
  "audio/webm",
  "audio/wav",
  "audio/flac",
  "audio/aac",
]);

/**
 * Sends a file made by people or models, without a chance to run script: its media type is sniffed and must be on an
 * allowlist, otherwise the file is a download. Supports single byte ranges, which seeking in a recording needs.
 */
export function sendUntrustedFile(
  request: IncomingMessage,
  response: ServerResponse,
  file: { readonly bytes: Uint8Array; readonly name: string; readonly isDownload: boolean },
): void {
  const sniffed = sniff(file.bytes);
  const mediaType = sniffed.kind === "empty" ? "" : sniffed.mediaType;
  const isInline = inlineTypes.has(mediaType) && !file.isDownload;
  const headers: Record<string, string | number> = {
    ...commonHeaders,
    "Content-Security-Policy": inertPolicy,
    "Content-Type": inlineTypes.has(mediaType) ? mediaType : "application/octet-stream",
    "Content-Disposition": toDisposition(isInline ? "inline" : "attachment", file.name),
    "Cache-Control": "private, max-age=31536000, immutable",
    "Accept-Ranges": "bytes",
  };
  const size = file.bytes.byteLength;
  const range = rangeOf(request.headers.range, size);
  if (range === "outside") {
    response.writeHead(416, { ...headers, "Content-Range": `bytes */${size}` }).end();
    return;
  }
  const part = range === undefined ? file.bytes : file.bytes.subarray(range.from, range.to + 1);
  if (range !== undefined) headers["Content-Range"] = `bytes ${range.from}-${range.to}/${size}`;
  headers["Content-Length"] = part.byteLength;
  response.writeHead(range === undefined ? 200 : 206, headers);
  response.end(request.method === "HEAD" ? undefined : part);
}

/** One byte range, both ends inclusive. `undefined`, for several ranges and other units: the whole file. */
function rangeOf(
  header: string | undefined,
  size: number,
): { readonly from: number; readonly to: number } | "outside" | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (match === null || (match[1] === "" && match[2] === "")) return undefined;
  const [, first = "", last = ""] = match;
  const from = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return from >= size || from > to ? "outside" : { from, to };
}

/** A Content-Disposition header. `name` may be anything. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = name.replace(/[\p{Cc}/\\]/gu, "_").slice(0, 150) || "file";
  const encoded = encodeURIComponent(plain.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename*=UTF-8''${encoded}`;
}
