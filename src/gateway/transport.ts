import { Agent, type Dispatcher } from "undici";
import { isParleyError, ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { AttemptError } from "./attempt-error.ts";
import { type ErrorInfo, readError } from "./error-body.ts";
import { type Headers, toAttemptError, toConnectionError } from "./failures.ts";
import type { Scrub } from "./scrub.ts";
import type { Watch } from "./attempt-timeouts.ts";

/** Most of an error body that is read. */
const maxErrorBytes = 64 * 1024;

/** One request to the gateway. `body` is made anew for every attempt. */
interface GatewayRequest {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly method: "GET" | "POST";
  /** Below the base URL, e.g. `/v1/models`. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | AsyncIterable<Uint8Array> | undefined;
}

/** An answer whose status is a success; its body is still to be read. */
export interface GatewayResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Dispatcher.ResponseData["body"];
}

/** Sends requests to one gateway over connections of its own. */
export interface Transport {
  /**
   * Resolves when a success status has arrived.
   * @throws AttemptError on any other status, a broken connection or a timer; the caller's reason when it gave up
   */
  send(request: GatewayRequest, watch: Watch, callerSignal: AbortSignal): Promise<GatewayResponse>;
  close(): Promise<void>;
}

/** Where the gateway is. */
export interface TransportOptions {
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly connectMs: number;
  readonly scrub: Scrub;
}

/**
 * A transport with its own connections; the key goes to the base URL's origin alone, redirects are not followed.
 * @throws ParleyError `config` when the base URL is none
 */
export function createTransport(options: TransportOptions): Transport {
  const { origin, basePath, search } = parseBaseUrl(options.baseUrl);
  const agent = new Agent({
    connect: { timeout: options.connectMs },
    // With HTTP/2 one lost connection would end every answer under way.
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const common: Readonly<Record<string, string>> = {
    "user-agent": "parley",
    "accept-encoding": "identity",
    ...(options.apiKey !== undefined &&
      options.apiKey !== "" && { authorization: `Bearer ${options.apiKey}` }),
  };

  return {
    async send(request, watch, callerSignal) {
      const { operation, model } = request;
      let answer: Dispatcher.ResponseData;
      try {
        answer = await agent.request({
          origin,
          path: `${basePath}${request.path}${search}`,
          method: request.method,
          headers: { ...common, ...request.headers },
          // Any iterable is taken, and waited for whenever the socket is full; the types do not say so.
          body: (request.body ?? null) as string | null,
          signal: watch.signal,
        });
      } catch (error) {
        throw translateBreak(error, { operation, model, watch, callerSignal });
      }
      const { statusCode: status, headers, body } = answer;
      if (status >= 200 && status < 300) return { status, headers, body };
      let info: ErrorInfo | undefined;
      try {
        info = readErrorText(await readCapped(body, maxErrorBytes), status);
      } catch (error) {
        if (callerSignal.aborted) throw callerSignal.reason;
        // The status alone says enough; why its body could not be read does not matter.
        info = {
          message: `status ${status}, and the rest was lost (${error instanceof Error ? error.name : "?"})`,
        };
      }
      throw toAttemptError({ operation, model, status, headers, info }, options.scrub);
    },
    async close() {
      await agent.destroy();
    },
  };
}

/** What an attempt was doing when it broke. */
export interface BreakContext {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly watch: Watch;
  readonly callerSignal: AbortSignal;
}

/**
 * The error to throw when a request or its body broke: the caller's own reason when it gave up, a timer's
 * `gateway-timeout`, else `gateway-unreachable`.
 */
export function translateBreak(error: unknown, context: BreakContext): unknown {
  const { watch, callerSignal, model } = context;
  if (callerSignal.aborted) return callerSignal.reason;
  if (error instanceof AttemptError) return error;
  const reason: unknown = watch.signal.aborted ? watch.signal.reason : undefined;
  if (isParleyError(reason, "gateway-timeout")) {
    const failure = new ParleyError(reason.code, `${context.operation} failed: ${reason.message}`, {
      detail: { ...(model !== undefined && { model }), ...reason.detail },
    });
    return new AttemptError(failure, "timeout");
  }
  return toConnectionError(error, context.operation, model);
}

function parseBaseUrl(baseUrl: string): { origin: string; basePath: string; search: string } {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:"))
    throw new ParleyError("config", "GATEWAY_BASE_URL must be an http or https address");
  if (url.username !== "" || url.password !== "")
    throw new ParleyError(
      "config",
      "GATEWAY_BASE_URL must not hold a user name or password; set GATEWAY_API_KEY",
    );
  return {
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, "").replace(/\/v1$/, ""),
    search: url.search,
  };
}

/** Up to `maxBytes` of a body; the rest is given up together with its connection. */
async function readCapped(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size >= maxBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, maxBytes).toString("utf8");
}

/** What the body of an error status says: JSON in any of the usual shapes, a proxy's page, or plain words. */
function readErrorText(text: string, status: number): ErrorInfo | undefined {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  // An event stream may begin with the error.
  const json = trimmed.replace(/^(?:event:[^\n]*\n)?data:\s*/, "");
  if (json.startsWith("{") || json.startsWith("[")) {
    const value = parseJson(json);
    if (value !== undefined) return readError(value) ?? { message: `status ${status} without a reason` };
  }
  if (trimmed.startsWith("<")) return { message: pageTitle(trimmed) };
  return { message: trimmed };
}

/** What a proxy's page says of itself, in a few words. */
export function pageTitle(html: string): string {
  const title = /<title[^>]*>([^<]{1,200})/i.exec(html)?.[1]?.trim();
  return title === undefined || title === "" ? "a web page instead of an answer" : `a web page: ${title}`;
}

/** `undefined` where the text is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
