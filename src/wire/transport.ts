import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";
import { type Dispatcher, FormData } from "undici";
import { ParleyError, isParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { type Log, currentTurn } from "../core/telemetry.ts";
import { createByteCollector } from "../support/byte-collector.ts";
import { isExcessiveJson } from "../support/http/body.ts";
import { createDispatcher } from "../support/proxy.ts";
import { toBytes, toJsonPieces } from "../support/text-pieces.ts";
import type { AttemptTimeouts } from "./attempt.ts";
import {
  AttemptError,
  readError,
  toAttemptError,
  type Scrub,
  type ErrorInfo,
  type Redirect,
  type Headers,
  requestIdOf,
  toConnectionError,
} from "./failures.ts";

/** The largest part of an error body that is read. */
const maxErrorBytes = 64 * 1024;
/** The most values and keys of an answer. A list of a thousand models fits, as do the words of an hour. */
const maxAnswerValues = 300_000;

/**
 * Options of a socket that is not read while the body of its response is paused. By default up to 64 KiB are
 * read ahead. Each packet of a stream then wakes the process, and undici loses them when the connection is
 * reset. Its types lack this option.
 */
const pausable = { highWaterMark: 1 };

/** One attempt of a call. */
interface Attempt {
  readonly operation: Operation;
  readonly model: string | undefined;
  /** The timers that a request and the reader of its answer use. */
  readonly timeouts: Pick<AttemptTimeouts, "signal" | "progress" | "alive">;
  readonly callerSignal: AbortSignal;
}

/** One request to a gateway: JSON, a form, or a GET without a body. */
export interface GatewayRequest extends Attempt {
  /** The path below the base URL, e.g. `/models`. */
  readonly path: string;
  /** Default `application/json`. */
  readonly accept?: string;
  /** These are sent in addition. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object | FormData;
}

/** An answer with a success status and an unread body. */
export interface GatewayResponse extends Attempt {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Readable;
  readonly scrub: Scrub;
}

/** Sends requests to one gateway over its own connections. */
export interface Transport {
  /**
   * Resolves with a success status.
   * @throws AttemptError for any other status, a lost connection or a timeout, or the caller's reason when it
   *   aborts
   */
  send(request: GatewayRequest): Promise<GatewayResponse>;
  close(): Promise<void>;
}

/** The address and key of a gateway. */
interface TransportOptions {
  /** The address before the paths of operations, with its version. See {@link toVersionedUrl}. */
  readonly baseUrl: URL;
  readonly apiKey: string | undefined;
  readonly connectMs: number;
  /** The longest silence before and in an answer. By default only the timers of the attempt end it. */
  readonly silenceMs?: number;
  /** These are sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly scrub: Scrub;
  readonly log: Log;
  /** Is called with the headers of every response. */
  readonly onHeaders?: ((headers: Headers) => void) | undefined;
}

/** A request, its list of messages, a message, its list of parts, and each of them, which is a piece. */
const levelsOfRequest = 4;

/** How many redirects of one request are followed. */
const maxRedirects = 3;

/** Creates a transport that sends the key only to the base URL's origin. Redirects are followed within it. */
export function createTransport(options: TransportOptions): Transport {
  const { log, scrub, silenceMs = 0 } = options;
  const { origin, pathname, search } = options.baseUrl;
  const basePath = pathname.replace(/\/$/, "");
  const agent = createDispatcher({
    connect: { ...pausable, timeout: options.connectMs },
    // With HTTP/2 one lost connection would interrupt every running answer.
    allowH2: false,
    maxHeaderSize: 16 * 1024,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
  const common: Readonly<Record<string, string>> = {
    "user-agent": "parley",
    "accept-encoding": "identity",
    ...options.headers,
    ...(options.apiKey !== undefined &&
      options.apiKey !== "" && { authorization: `Bearer ${options.apiKey}` }),
  };

  return {
    async send({ path, accept = "application/json", headers: own, body: content, ...attempt }) {
      const { operation, model } = attempt;
      const isJson = content !== undefined && !(content instanceof FormData);
      const body = isJson ? await toBytes(toJsonPieces(content, levelsOfRequest)) : (content ?? null);
      const span = currentTurn()?.span;
      const startedAt = performance.now();
      const logRequest = (fields: Readonly<Record<string, unknown>>): void => {
        const durationMs = Math.round(performance.now() - startedAt);
        log.debug({ operation, model, durationMs, ...fields }, "gateway request");
      };
      const request = async (target: string): Promise<Dispatcher.ResponseData> =>
        await agent.request({
          origin,
          path: target,
          method: content === undefined ? "GET" : "POST",
          headers: {
            ...common,
            accept,
            ...(isJson && { "content-type": "application/json" }),
            ...own,
            ...(span?.traceparent !== undefined && { traceparent: span.traceparent }),
          },
          body,
          signal: attempt.timeouts.signal,
          // The reader of an answer pauses it. What is read ahead may be pieces of one byte.
          highWaterMark: 1,
        });
      let answer: Dispatcher.ResponseData;
      let redirect: URL | undefined;
      try {
        let target = `${basePath}${path}${search}`;
        answer = await request(target);
        for (let followed = 0; ; followed++) {
          redirect = redirectOf(answer, new URL(target, origin));
          if (redirect?.origin !== origin || followed === maxRedirects) break;
          target = `${redirect.pathname}${redirect.search}`;
          await answer.body.dump();
          // A request stays what it is, since nothing here is a form of a web page.
          answer = await request(target);
        }
      } catch (error) {
        const failure = translateFailure(error, attempt);
        const code = failure instanceof AttemptError ? failure.failure.code : undefined;
        logRequest({ code: code ?? "aborted" });
        throw failure;
      }
      const { statusCode: status, headers } = answer;
      options.onHeaders?.(headers);
      const requestId = requestIdOf(headers, scrub);
      logRequest({ status, requestId });
      span?.set({ "http.response.status_code": status });
      if (requestId !== undefined) span?.set({ "parley.gateway.request_id": requestId });
      const received = toDecoded(answer.body, headers["content-encoding"]);
      // Readers see errors themselves. An error after they have stopped reading must not end the process.
      received.on("error", () => {});
      if (status >= 200 && status < 300) return { ...attempt, status, headers, body: received, scrub };
      let info: ErrorInfo | undefined;
      try {
        info = readErrorText(await readCapped(received, maxErrorBytes), status);
      } catch (error) {
        if (attempt.callerSignal.aborted) throw attempt.callerSignal.reason;
        // The status is enough.
        info = {
          message: `status ${status}, the body could not be read (${error instanceof Error ? error.name : "?"})`,
        };
      }
      const redirectsTo = redirect && redirectDetail(redirect, path);
      throw toAttemptError({ operation, model, status, headers, info, redirectsTo }, scrub);
    },
    async close() {
      await agent.destroy();
    },
  };
}

/** Returns the target of a redirect, or `undefined` for other answers. */
function redirectOf({ statusCode, headers }: Dispatcher.ResponseData, from: URL): URL | undefined {
  const { location } = headers;
  if (![301, 302, 307, 308].includes(statusCode) || typeof location !== "string") return undefined;
  return URL.canParse(location, from.href) ? new URL(location, from) : undefined;
}

/** Names the target of a redirect: as a base address where it is the same operation elsewhere. */
function redirectDetail({ origin, pathname }: URL, path: string): Redirect {
  const target = pathname.replace(/(?<!\/)\/+$/, "");
  return target.endsWith(path)
    ? { redirectsTo: `${origin}${target.slice(0, -path.length)}`, isBase: 1 }
    : { redirectsTo: `${origin}${pathname}` };
}

const decoders: ReadonlyMap<string, () => NodeJS.ReadWriteStream> = new Map(
  Object.entries({
    gzip: createGunzip,
    "x-gzip": createGunzip,
    deflate: createInflate,
    br: createBrotliDecompress,
    zstd: createZstdDecompress,
  }),
);
/** How many encodings of one body may be nested. */
const maxEncodings = 3;

/**
 * Returns the body as it was before a proxy compressed it, which some do although nobody asked for it.
 * Readers limit what comes out. A body in an unknown encoding is left as it is.
 */
function toDecoded(body: Readable, encoding: string | readonly string[] | undefined): Readable {
  const names = [encoding ?? []].flat().flatMap((value) => value.toLowerCase().split(","));
  const wanted = names.map((name) => name.trim()).filter((name) => name !== "" && name !== "identity");
  const create = wanted.toReversed().flatMap((name) => decoders.get(name) ?? []);
  if (create.length === 0 || create.length < wanted.length || create.length > maxEncodings) return body;
  const streams = [body, ...create.map((decoder) => decoder())];
  // The reader of the last stream sees an error of any of them.
  return pipeline(streams, () => {}) as unknown as Readable;
}

/**
 * Returns the error to throw when a request or its body fails: the caller's reason when it aborted, a
 * `gateway-timeout` when a timer expired, else `gateway-unreachable`.
 */
export function translateFailure(error: unknown, attempt: Attempt): unknown {
  const { operation, timeouts, callerSignal, model } = attempt;
  if (callerSignal.aborted) return callerSignal.reason;
  if (error instanceof AttemptError) return error;
  const reason: unknown = timeouts.signal.aborted ? timeouts.signal.reason : undefined;
  if (isParleyError(reason, "gateway-timeout")) {
    const failure = new ParleyError(reason.code, `${operation} failed: ${reason.message}`, {
      detail: { ...(model !== undefined && { model }), ...reason.detail },
    });
    return new AttemptError(failure, "timeout");
  }
  return toConnectionError(error, operation, model);
}

/** Matches base addresses with a version of their own, without `/v1`: Gemini, Zhipu, Volcengine, Azure. */
const ownVersion =
  /\/v\d(?:(?:alpha|beta)\d?)?\/openai$|\/v[02-9]$|\/v1(?:alpha|beta)\d?$|\/openai\/deployments\/[^/]{1,200}$/;

/**
 * Returns the address before the paths of a gateway's operations. It ends in `/v1`, unless it has its own
 * version.
 * @throws ParleyError `config` when the base URL is invalid
 */
export function toVersionedUrl(baseUrl: string): URL {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new ParleyError("config", "GATEWAY_BASE_URL must be an http or https address");
  if (url.username !== "" || url.password !== "")
    throw new ParleyError(
      "config",
      "GATEWAY_BASE_URL must not hold a user name or password; set GATEWAY_API_KEY",
    );
  const given = url.pathname.replace(/(?<!\/)\/+$/, "");
  // A whole endpoint names the form that its server has.
  const basePath = given.replace(/\/chat\/completions$/, "");
  const hasOwnVersion = basePath !== given || ownVersion.test(basePath);
  url.pathname = hasOwnVersion ? basePath : `${basePath.replace(/\/v1$/, "")}/v1`;
  return url;
}

/** Reads at most `maxBytes` of a body. A larger body is aborted with its connection. */
async function readCapped(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const content = createByteCollector(maxBytes);
  for await (const chunk of body)
    if (!content.add(chunk.subarray(0, maxBytes - content.bytes())) || content.bytes() === maxBytes) break;
  return content.take().toString("utf8");
}

/** Reads the error in the body of an error status: JSON in any usual shape, a web page, or plain text. */
function readErrorText(text: string, status: number): ErrorInfo | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  // An event stream may begin with the error.
  const json = trimmed.replace(/^(?:event:[^\n]*\n)?(?:data|error):\s*/, "");
  if (json.startsWith("{") || json.startsWith("[")) {
    const value = parseJson(json);
    if (value !== undefined) return readError(value) ?? { message: `status ${status} without a message` };
  }
  if (trimmed.startsWith("<")) return { message: pageTitle(trimmed), isPage: true };
  return { message: trimmed };
}

/** Returns the title of a web page, for error messages. */
export function pageTitle(html: string): string {
  const title = /<title[^<>]{0,200}>([^<]{1,200})/i.exec(html)?.[1]?.trim();
  return title === undefined || title === "" ? "a web page instead of an answer" : `a web page: ${title}`;
}

/** Returns `undefined` for text that is not JSON, that nests too deeply or has too many values. */
export function parseJson(text: string): unknown {
  if (isExcessiveJson(text, maxAnswerValues)) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The body of an answer: parsed JSON or plain text. */
type AnswerBody =
  | { readonly kind: "json"; readonly value: unknown }
  | { readonly kind: "text"; readonly text: string };

/**
 * Reads an answer that is not streamed. Blank lines before it show that the server is alive.
 * @throws AttemptError for an error in the body (whatever the status), a web page, more than `maxBytes`, a
 *   lost connection or a timeout
 */
export async function readAnswerBody(response: GatewayResponse, maxBytes: number): Promise<AnswerBody> {
  const text = await readText(response, maxBytes);
  const trimmed = text.trim().replace(/^\uFEFF/, "");
  if (trimmed.startsWith("<")) throw badAnswer(response, "a web page", pageTitle(trimmed));
  if (!/^[[{"]/.test(trimmed)) return { kind: "text", text: trimmed };
  const value = parseJson(trimmed);
  if (value === undefined) {
    if (trimmed.startsWith('"')) return { kind: "text", text: trimmed };
    throw badAnswer(response, "broken JSON");
  }
  const info = readError(value);
  const { operation, model, status, headers } = response;
  if (info !== undefined) throw toAttemptError({ operation, model, status, headers, info }, response.scrub);
  return typeof value === "string" ? { kind: "text", text: value } : { kind: "json", value };
}

/**
 * Returns the text of an answer that is not streamed.
 * @throws AttemptError for more than `maxBytes`, a lost connection or a timeout
 */
export async function readText(response: GatewayResponse, maxBytes: number): Promise<string> {
  const content = createByteCollector(maxBytes);
  let hasBegun = false;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      if (!content.add(chunk)) throw badAnswer(response, `more than ${maxBytes} bytes`);
      hasBegun ||= chunk.some((byte) => byte > 0x20);
      if (hasBegun) response.timeouts.progress();
      else response.timeouts.alive();
    }
    response.callerSignal.throwIfAborted();
  } catch (error) {
    throw translateFailure(error, response);
  }
  return content.take().toString("utf8");
}

/** Makes the `gateway-bad-answer` of an answer that is `what`. The error message quotes `text`. */
export function badAnswer(
  { operation, model, status, scrub }: GatewayResponse,
  what: string,
  text = "",
): AttemptError {
  return new AttemptError(
    new ParleyError("gateway-bad-answer", `${operation} failed: the answer is ${what}`, {
      detail: {
        ...(model !== undefined && { model }),
        status,
        ...(text !== "" && { gatewayMessage: scrub(text) }),
      },
    }),
    "never",
  );
}

/** The file of a form. */
interface FormFile {
  /** It is sent as `application/octet-stream` where this is no media type. */
  readonly mediaType: string;
  readonly fileName: string;
  readonly bytes: Uint8Array;
}

/** Makes a multipart/form-data body: the defined text fields in order, then the part `file`. */
export function toForm(
  fields: Readonly<Record<string, string | undefined>>,
  { bytes, fileName, mediaType }: FormFile,
): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.append(name, value);
  const type = /^[\w.+-]+\/[\w.+-]+(?:;[\w=. "-]+)?$/.test(mediaType)
    ? mediaType
    : "application/octet-stream";
  form.append("file", new File([bytes], fileName, { type }));
  return form;
}
