import type { IncomingMessage } from "node:http";
import { createByteCollector, createByteLimit } from "../byte-collector.ts";

/** A request's JSON body, or why there is none. Each caller makes its own error of the failure. */
export type JsonBody =
  | { readonly kind: "json"; readonly value: unknown }
  /** `contentType` is in lower case without parameters. It is empty if the header is missing. */
  | { readonly kind: "wrong-type"; readonly contentType: string }
  | { readonly kind: "too-large" }
  | { readonly kind: "not-utf8"; readonly cause: unknown }
  /** Covers also JSON that is nested too deeply or has too many values. */
  | { readonly kind: "not-json"; readonly cause: unknown };

/**
 * Reads a JSON body of at most `maxBytes`. It reads nothing if the announced length is larger. The socket
 * always stays open, so that an answer can say what was wrong.
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

/** The media type of a request's body in lower case without parameters, or empty without the header. */
export function contentTypeOf(request: IncomingMessage): string {
  return (request.headers["content-type"] ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

/** Whether the announced length is over `maxBytes`. It is false if no length is announced. */
export function announcesMoreThan(request: IncomingMessage, maxBytes: number): boolean {
  return Number(request.headers["content-length"] ?? 0) > maxBytes;
}

/**
 * Reads the body, or returns `undefined` over `maxBytes` and leaves the rest unread. `onBytes` gets the
 * size of each piece.
 */
export async function readRequestBody(
  request: IncomingMessage,
  maxBytes: number,
  onBytes?: (bytes: number) => void,
): Promise<Buffer | undefined> {
  if (announcesMoreThan(request, maxBytes)) return undefined;
  const body = createByteCollector(maxBytes);
  // This is not a `for await` loop, because leaving one early destroys the socket and with it the answer.
  return new Promise((resolve, reject) => {
    const onData = (piece: Buffer): void => {
      onBytes?.(piece.length);
      if (body.add(piece)) return;
      request.off("data", onData).pause();
      resolve(undefined);
    };
    request.on("data", onData);
    request.once("end", () => resolve(body.take()));
    request.once("error", reject);
    request.once("close", () => reject(new Error("client disconnected before the end of the request body")));
  });
}

/** Deeper JSON takes far more memory, stack or time than its text. */
const maxDepth = 128;
/** The limit for values and keys. Requests with thousands of messages and many tools have half of it. */
const maxValuesOfRequest = 100_000;
/** A shorter text cannot be too deep for any parser. */
const harmlessChars = 1024;

/**
 * Whether JSON text nests more than 128 levels or has more values and keys than `maxValues`, by default
 * 100,000. It must be called before parsing, because a few megabytes of brackets become gigabytes of objects.
 * It takes linear time and is fast over long strings.
 */
export function isExcessiveJson(text: string, maxValues = maxValuesOfRequest): boolean {
  if (text.length <= harmlessChars) return false;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22:
        at = endOfString(text, at);
        break;
      case 0x5b:
      case 0x7b:
        depth += 1;
        values += 1;
        if (depth > maxDepth) return true;
        break;
      case 0x5d:
      case 0x7d:
        depth -= 1;
        break;
      case 0x2c:
      case 0x3a:
        values += 1;
        break;
    }
    if (values > maxValues) return true;
  }
  return false;
}

/** The position of the quotation mark that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  if (text.charCodeAt(end - 1) !== 0x5c) return end;
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) return at;
    if (code === 0x5c) at++;
  }
  return text.length;
}

/** How much of an unread request is discarded after its answer. */
interface DrainLimits {
  readonly maxBytes: number;
  readonly maxMs: number;
}

const lingerMs = 1000;

/**
 * Discards the unread rest of a refused request, because many clients read the answer only at the end. After
 * `maxBytes` it reads no more and closes the connection a second later, or else after `maxMs`.
 */
export function drainRequest(request: IncomingMessage, { maxBytes, maxMs }: DrainLimits): void {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  const limit = createByteLimit(maxBytes);
  let timer = setTimeout(() => socket.destroy(), maxMs);
  timer.unref();
  // An unfinished multipart reader would keep the request paused.
  request.removeAllListeners("readable");
  request.on("data", (chunk: Buffer) => {
    if (limit.take(chunk) || request.isPaused()) return;
    request.pause();
    clearTimeout(timer);
    // The client gets the answer first, which a reset of the connection would discard.
    timer = setTimeout(() => socket.destroy(), lingerMs);
    timer.unref();
  });
  request.once("close", () => clearTimeout(timer));
  request.once("end", () => clearTimeout(timer));
  request.resume();
}
