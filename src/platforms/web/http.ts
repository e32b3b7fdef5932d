import type { IncomingMessage, ServerResponse } from "node:http";
import { isParleyError, ParleyError, type ErrorCode } from "../../core/errors.ts";
import { readJsonBody } from "../../support/read-request-body.ts";

const maxJsonBytes = 256 * 1024;

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

/**
 * Reads a JSON object of at most 256 KiB.
 * @throws ParleyError `invalid-option` when the body is not a JSON object or has another content type,
 *   `attachment-too-large` over 256 KiB
 */
export async function readJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const body = await readJsonBody(request, maxJsonBytes);
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
      throw new ParleyError("attachment-too-large", `request body over ${maxJsonBytes} bytes`, {
        detail: { maxBytes: maxJsonBytes },
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
  "store-unavailable": 503,
  stopping: 503,
};

/** The HTTP status of an error; 500 for every code without a status of its own. */
export function statusOf(error: unknown): number {
  return (isParleyError(error) ? statuses[error.code] : undefined) ?? 500;
}

function notJson(cause?: unknown): ParleyError {
  return new ParleyError("invalid-option", "request body is not a JSON object", {
    detail: { option: "body", problem: "it must be a JSON object" },
    ...(cause === undefined ? {} : { cause }),
  });
}
