import type { IncomingMessage, ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { isParleyError, ParleyError, type ErrorCode } from "../../core/errors.ts";
import { encodingFor } from "./compressed-file.ts";
import { readJsonBody } from "../../support/read-request-body.ts";
import { translate } from "../../words/translate.ts";

const maxJsonBytes = 256 * 1024;
const jsonTimeoutMs = 20_000;
/** Compressed at once: this takes a few milliseconds. */
const maxCompressedBytes = 256 * 1024;

/** Headers of every response: no MIME sniffing, no framing, no referrer, no use by other origins. */
export const commonHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** Content Security Policy of responses that are not documents: opened as a document, they can load and run nothing. */
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
 * Sends a JSON response compressed, where the client accepts it. For what holds nothing of people: next to text of
 * somebody else's choice the length of compressed text tells about it.
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

/** The header that asks a client to wait, in whole seconds, at least one. */
export function retryAfter(waitMs: number): { readonly "Retry-After": string } {
  return { "Retry-After": `${Math.max(1, Math.ceil(waitMs / 1000))}` };
}

/**
 * Reads a JSON object. Default limits: 256 KiB and 20 seconds, after which the connection is closed.
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

/** The HTTP status of an error; 500 for every code without a status of its own. */
export function statusOf(error: unknown): number {
  return (isParleyError(error) ? statuses[error.code] : undefined) ?? 500;
}

function notJson(cause?: unknown): ParleyError {
  return new ParleyError("invalid-option", "request body is not a JSON object", {
    detail: { option: "body", problem: translate("web.json") },
    ...(cause === undefined ? {} : { cause }),
  });
}
