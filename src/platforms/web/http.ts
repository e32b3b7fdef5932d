import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import type { z } from "zod";
import { isParleyError, ParleyError, type ErrorCode } from "../../core/errors.ts";
import { sniff } from "../../media/sniff.ts";
import { readJsonBody } from "../../support/http/body.ts";
import { inertHeaders, jsonType, retryAfter, send, toDisposition } from "../../support/http/server.ts";
import { encodingFor } from "../../support/http/static-files.ts";
import { translate } from "../../words/translate.ts";

const maxJsonBytes = 256 * 1024;
const jsonTimeoutMs = 20_000;
/** Larger bodies would block the event loop for too long, because they are compressed synchronously. */
const maxCompressedBytes = 256 * 1024;

/** Sends a JSON response that is never cached. */
export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  send(response, status, JSON.stringify(body), { ...inertHeaders, ...jsonType, ...headers });
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
  send(response, 200, gzipSync(bytes), { ...inertHeaders, ...jsonType, "Content-Encoding": "gzip" });
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

/** Limits of a body, past which the request is refused or its connection closed. */
interface BodyLimits {
  /** Default 256 KiB. */
  readonly maxBytes?: number;
  /** Default 20 seconds. */
  readonly timeoutMs?: number;
}

/**
 * Reads a JSON body of this shape.
 * @throws ParleyError `invalid-option` when the body is no JSON, of another shape or content type,
 *   `attachment-too-large` over the limit
 * @throws Error when the client disconnects or is too slow
 */
export async function readBody<T>(
  request: IncomingMessage,
  shape: z.ZodType<T>,
  { maxBytes = maxJsonBytes, timeoutMs = jsonTimeoutMs }: BodyLimits = {},
): Promise<T> {
  const timer = setTimeout(() => request.destroy(), timeoutMs);
  const body = await readJsonBody(request, maxBytes).finally(() => clearTimeout(timer));
  switch (body.kind) {
    case "json": {
      const { data, error } = shape.safeParse(body.value);
      if (data === undefined) throw badField(String(error?.issues[0]?.path[0] ?? "body"));
      return data;
    }
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

/** Makes an error for a field of a request body that is missing or invalid. */
export function badField(name: string): ParleyError {
  return new ParleyError("invalid-option", `field ${name} is invalid`, {
    detail: { command: "message", option: name, problem: translate("web.field") },
  });
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
  const headers: Record<string, string> = {
    ...inertHeaders,
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
  send(response, range === undefined ? 200 : 206, part, headers);
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
