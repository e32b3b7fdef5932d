import type { IncomingMessage, ServerResponse } from "node:http";
import { isParleyError, ParleyError, type ErrorCode } from "../../core/errors.ts";

/** Headers of every answer: nothing is guessed, framed, cached or told to other sites. */
export const commonHeaders: Readonly<Record<string, string>> = {
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cross-Origin-Opener-Policy": "same-origin",
  "X-Frame-Options": "DENY",
};

/** Content Security Policy of answers that are no page: should one be opened as a page, it can do nothing. */
export const inertPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox";

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

/** An error as the page shows it. `message` is a sentence for people. */
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
 * A request's body, whole.
 * @throws ParleyError `attachment-too-large` past `maxBytes`, before it is read where its length is announced
 */
async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * A JSON body of at most 256 KiB.
 * @throws ParleyError `invalid-option` when it is no JSON object or not sent as JSON
 */
export async function readJson(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  if (!(request.headers["content-type"] ?? "").startsWith("application/json")) throw notJson();
  const text = (await readBody(request, 256 * 1024)).toString("utf8");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw notJson(cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw notJson();
  return value as Record<string, unknown>;
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

/** The HTTP status that fits an error; what is not listed is the server's trouble. */
export function statusOf(error: unknown): number {
  return (isParleyError(error) ? statuses[error.code] : undefined) ?? 500;
}

function tooLarge(maxBytes: number): ParleyError {
  return new ParleyError("attachment-too-large", `body over ${maxBytes} bytes`, { detail: { maxBytes } });
}

function notJson(cause?: unknown): ParleyError {
  return new ParleyError("invalid-option", "the body is no JSON object", {
    detail: { option: "body", problem: "it must be a JSON object" },
    ...(cause === undefined ? {} : { cause }),
  });
}
