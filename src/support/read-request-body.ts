import type { IncomingMessage } from "node:http";
import { isExcessiveJson } from "./json-limits.ts";

/** A request's JSON body, or why there is none. Each caller turns the failure into an error of its own. */
export type JsonBody =
  | { readonly kind: "json"; readonly value: unknown }
  /** `contentType` is in lower case without parameters, empty when the header is missing. */
  | { readonly kind: "wrong-type"; readonly contentType: string }
  | { readonly kind: "too-large" }
  | { readonly kind: "not-utf8"; readonly cause: unknown }
  /** Also for JSON that nests too deeply or has too many values. */
  | { readonly kind: "not-json"; readonly cause: unknown };

/**
 * Reads a JSON body of at most `maxBytes`; one whose announced length is larger is not read at all. The socket stays
 * open in every case, so that an answer can say what was wrong.
 * @throws Error when the client disconnects before the end of the body
 */
export async function readJsonBody(request: IncomingMessage, maxBytes: number): Promise<JsonBody> {
  const contentType = contentTypeOf(request);
  if (contentType !== "application/json") return { kind: "wrong-type", contentType };
  const bytes = await readRequestBody(request, maxBytes);
  if (bytes === undefined) return { kind: "too-large" };
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (cause) {
    return { kind: "not-utf8", cause };
  }
  if (isExcessiveJson(text)) return { kind: "not-json", cause: new RangeError("excessive JSON") };
  try {
    return { kind: "json", value: JSON.parse(text) as unknown };
  } catch (cause) {
    return { kind: "not-json", cause };
  }
}

/** The media type of a request's body: lower case, without parameters. Empty when the header is missing. */
export function contentTypeOf(request: IncomingMessage): string {
  return (request.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Whether the announced length is over `maxBytes`. False when no length is announced. */
export function announcesMoreThan(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers["content-length"] ?? 0) > maxBytes;
}

/** The body as bytes, or `undefined` when it has more than `maxBytes`. `onBytes` is told of each piece that comes. */
export async function readRequestBody(
  request: IncomingMessage,
  maxBytes: number,
  onBytes?: (bytes: number) => void,
): Promise<Buffer | undefined> {
  if (announcesMoreThan(request, maxBytes)) return undefined;
  const chunks: Buffer[] = [];
  let size = 0;
  // Not `for await`: leaving such a loop early destroys the socket, and the answer with it.
  return new Promise((resolve, reject) => {
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      onBytes?.(chunk.length);
      if (size <= maxBytes) chunks.push(chunk);
      else resolve(undefined);
    });
    request.once("end", () => resolve(Buffer.concat(chunks, Math.min(size, maxBytes))));
    request.once("error", reject);
    request.once("close", () => reject(new Error("client disconnected before the end of the request body")));
  });
}
