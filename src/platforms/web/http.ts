import type { IncomingMessage, ServerResponse } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip, gzipSync } from "node:zlib";
import { isParleyError, ParleyError, type ErrorCode } from "../../core/errors.ts";
import { sniff } from "../../media/sniff.ts";
import { readJsonBody } from "../../support/http/body.ts";
import { translate } from "../../words/translate.ts";

const maxJsonBytes = 256 * 1024;
const jsonTimeoutMs = 20_000;
/** Larger bodies would block the event loop for too long, because they are compressed synchronously. */
const maxCompressedBytes = 256 * 1024;

/** The headers of every response: no MIME sniffing, no framing, no referrer, no use by other origins. */
export const commonHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** The Content Security Policy of other responses. Opened as a document, they can load and run nothing. */
export const inertPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox";

/** Sends a JSON response that is never cached. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(status, {
    ...commonHeaders,
    "Content-Security-Policy": inertPolicy,
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": bytes.length,
    "Cache-Control": "no-store",
    ...headers,
  });
  response.end(response.req.method === "HEAD" ? undefined : bytes);
}

/**
 * Sends a JSON response compressed, where the client accepts it. It must hold nothing of people: next to text
 * that somebody else chooses, the length of compressed text gives it away.
 */
export function sendCompressedJson(response: ServerResponse, body: unknown): void {
  const bytes = Buffer.from(JSON.stringify(body));
  if (encodingFor(response.req) === "identity" || bytes.length > maxCompressedBytes) {
    sendJson(response, 200, body);
    return;
  }
  const compressed = gzipSync(bytes);
  response.writeHead(200, {
    ...commonHeaders,
    "Content-Security-Policy": inertPolicy,
    "Content-Type": "application/json; charset=utf-8",
    "Content-Encoding": "gzip",
    "Content-Length": compressed.length,
    "Cache-Control": "no-store",
  });
  response.end(response.req.method === "HEAD" ? undefined : compressed);
}

/** Sends `{ error: { code, message } }`. `message` is a sentence that the page shows. */
export function sendProblem(
  response: ServerResponse,
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): void {
  sendJson(response, status, { error: { code, message } }, headers);
}

/** Sends a 429 that says when to try again. `message` is a sentence. */
export function sendTooMany(response: ServerResponse, waitMs: number, message: string): void {
  const headers = retryAfter(waitMs);
  const again = translate("web.try-again", { count: Number(headers["Retry-After"]) });
  sendProblem(response, 429, "too-many", `${message} ${again}`, headers);
}

/** Returns the header that asks a client to wait, in whole seconds, at least one. */
export function retryAfter(waitMs: number): { readonly "Retry-After": string } {
  return { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1000))}` };
}

/**
 * Reads a JSON object. The default limits are 256 KiB and 20 seconds, after which the connection is closed.
 * @throws ParleyError `invalid-option` when the body is not a JSON object or has another content type,
 *   `attachment-too-large` over the limit
 * @throws Error when the client disconnects or is too slow
 */
export async function readJson(
  request: IncomingMessage,
  { maxBytes = maxJsonBytes, timeoutMs = jsonTimeoutMs } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const timer = setTimeout(() => request.destroy(), timeoutMs);
  const body = await readJsonBody(request, maxBytes).finally(() => clearTimeout(timer));
  switch (body.kind) {
    case "json":
      if (typeof body.value !== "object" || body.value === null || Array.isArray(body.value)) throw notJson();
      return body.value as Record<string, unknown>;
    case "wrong-type":
      throw notJson();
    case "not-utf8":
    case "not-json":
      throw notJson(body.cause);
    case "too-large":
      throw new ParleyError("attachment-too-large", `request body over ${maxBytes} bytes`, {
        detail: { maxBytes },
      });
  }
}

const statuses: Partial<Record<ErrorCode, number>> = {
  "unknown-command": 422,
  "invalid-option": 422,
  "attachment-empty": 422,
  "attachment-unreadable": 422,
  "attachment-too-large": 413,
  "attachment-gone": 410,
  "not-permitted": 403,
  "store-unavailable": 503,
  "access-denied": 403,
  "rate-limited": 429,
  "over-budget": 429,
  busy: 429,
  stopping: 503,
};

/** Returns the HTTP status of an error, which is 500 for every code without a status of its own. */
export function statusOf(error: unknown): number {
  return (isParleyError(error) ? statuses[error.code] : undefined) ?? 500;
}

function notJson(cause?: unknown): ParleyError {
  return new ParleyError("invalid-option", "request body is not a JSON object", {
    detail: { option: "body", problem: translate("web.json") },
    ...(cause === undefined ? {} : { cause }),
  });
}

const toBrotli = promisify(brotliCompress);
const toGzip = promisify(gzip);

/** This is the best quality, since each file is compressed once. */
const brotliQuality = 11;
/** Smaller files hardly shrink. */
const minBytes = 256;

/** How a response is encoded. */
type Encoding = "br" | "gzip" | "identity";

/** Returns the best encoding that a client accepts. */
export function encodingFor({ headers }: Pick<IncomingMessage, "headers">): Encoding {
  const accepted = new Map(
    (headers["accept-encoding"] ?? "")
      .toLowerCase()
      .split(",")
      .map((part) => {
        const [name = "", weight = ""] = part.split(";");
        return [name.trim(), !/^\s*q=0(?:\.0+)?\s*$/.test(weight)] as const;
      }),
  );
  if (accepted.get("br") === true) return "br";
  return accepted.get("gzip") === true ? "gzip" : "identity";
}

/** Creates a file that is compressed on first use, outside of the event loop, for clients that accept it. */
export function createCompressedFile(bytes: Buffer) {
  const encoded = new Map<Encoding, Promise<Buffer>>();
  return async (wanted: Encoding): Promise<{ readonly encoding: Encoding; readonly bytes: Buffer }> => {
    if (wanted === "identity" || bytes.length < minBytes) return { encoding: "identity", bytes };
    const compressing = encoded.get(wanted) ?? compress(bytes, wanted);
    encoded.set(wanted, compressing);
    return { encoding: wanted, bytes: await compressing };
  };
}

function compress(bytes: Buffer, encoding: "br" | "gzip"): Promise<Buffer> {
  if (encoding === "gzip") return toGzip(bytes);
  const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
  return toBrotli(bytes, {
    params: { [BROTLI_PARAM_QUALITY]: brotliQuality, [BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
}

/** These media types are served inline. Everything else (HTML, SVG, PDF, …) is served as a download. */
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
 * Sends a file made by people or models, without a chance to run script. Its media type is sniffed and must
 * be on an allowlist, otherwise the file is a download. It supports single byte ranges, which seeking in a
 * recording needs.
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

/** Returns one byte range with inclusive ends. Several ranges and other units stand for the whole file. */
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

/** Makes a Content-Disposition header. `name` may be anything. */
export function toDisposition(kind: "inline" | "attachment", name: string): string {
  const plain = name.replace(/[\p{Cc}/\\]/gu, "_").slice(0, 150) || "file";
  const encoded = encodeURIComponent(plain.toWellFormed()).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16)}`,
  );
  return `${kind}; filename*=UTF-8''${encoded}`;
}
