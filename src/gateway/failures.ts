import { type ErrorCode, ParleyError } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { steadyClock } from "../support/steady-clock.ts";
import { AttemptError, type RetryClass } from "./attempt-error.ts";
import type { ErrorInfo } from "./error-body.ts";
import type { Scrub } from "./scrub.ts";

/** Headers of an answer, with lower-case names. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** A failed answer. `status` is 200 for an error inside a successful answer. */
export interface FailedAnswer {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly status: number;
  readonly headers: Headers;
  readonly info: ErrorInfo | undefined;
}

const contextLength = new RegExp(
  [
    // OpenAI, vLLM, llama.cpp, LM Studio, MiniMax, DeepSeek.
    "context[_ -]?(?:length|window|size|limit)",
    "maximum (?:context|model length|prompt length|input length)",
    "too many (?:input )?tokens",
    // Anthropic, Bedrock, Groq, older vLLM ("The decoder prompt (length 9000) is longer than …").
    "(?:prompt|input|request)[^.]{0,30} (?:is )?(?:too long|too large|longer than)",
    "exceed\\w{0,10} .{0,40}\\b(?:tokens?|max(?:imum)? length)\\b",
    "reduce the length",
    // DashScope, Ark, TGI, Mistral.
    "range of (?:input|prompt|max_tokens|messages)[^.]{0,20} (?:length )?should be",
    "tokens? (?:limit|of [^.]{0,40}) exceed",
    "must have less than \\d+ tokens",
    "max_new_tokens`? must be <=",
    "too large for model with",
    "token (?:count|limit)[^.]{0,40} exceed",
    // GLM and other services of Zhipu and ByteDance.
    "\\b1261\\b",
    "(?:prompt|文本|输入|上下文|内容)[^。]{0,10}(?:超长|过长|超过|超出)",
  ].join("|"),
  "i",
);
const unknownModel =
  /\bmodel\b.{0,200}?(?:not found|does(?:n't| not) exist|not exist|no longer|is not available|unavailable|is not a valid|not supported by any)|(?:unknown|invalid|no such|not a valid|unrecognized|unsupported) model|no endpoints found for/is;
const refusal =
  /content[_ ](?:filter|policy|management)|content_policy|safety (?:system|filter|setting)|moderation|flagged|responsible.?ai|prohibited.?content/i;
const quota =
  /insufficient_quota|insufficient (?:quota|credit|balance|funds)|billing|exceeded your current quota|budget/i;
const unsupported =
  /(?:does(?:n't| not)|do(?:n't| not)|cannot|not) (?:support|accept|allow)\w{0,10}.{0,60}\b(?:image|vision|audio|modalit|operation|endpoint)|support(?:s)? (?:image|audio) input|(?:image|vision|audio)\S{0,30} (?:input )?(?:is|are) not supported|only supports? text|at most 0 (?:image|audio)|not a multi-?modal|unknown variant `?image_url|image_url[^.]{0,40}(?:only supported|not supported)|content[^.]{0,20} must be a string|invalid content type[^.]{0,20}image/i;

const retriableStatuses = new Set([408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]);

const statusOfType: Readonly<Record<string, number>> = {
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  tokens: 429,
  requests: 429,
  insufficient_quota: 402,
  authentication_error: 401,
  invalid_api_key: 401,
  permission_error: 403,
  not_found_error: 404,
  model_not_found: 404,
  invalid_request_error: 400,
  context_length_exceeded: 400,
  overloaded_error: 529,
  timeout_error: 504,
  server_error: 500,
  internal_server_error: 500,
  api_error: 500,
};

/** The status of an error. Inside a successful answer it is derived from code and type; default 500. */
function effectiveStatus(status: number, info: ErrorInfo | undefined): number {
  if (status >= 300 || info === undefined) return status;
  const code = Number(info.code);
  if (Number.isInteger(code) && code >= 400 && code < 600) return code;
  return statusOfType[info.code ?? ""] ?? statusOfType[info.type ?? ""] ?? 500;
}

/**
 * Milliseconds from `retry-after-ms` or `retry-after` (seconds, or a date by the server's clock). `undefined` without a
 * valid header.
 */
export function readRetryAfter(headers: Headers, now = steadyClock.now()): number | undefined {
  const exact = Number(first(headers["retry-after-ms"]) ?? Number.NaN);
  if (Number.isFinite(exact) && exact >= 0) return exact;
  const value = first(headers["retry-after"])?.trim();
  if (value === undefined || value === "") return undefined;
  const seconds = Number(value);
  if (Number.isFinite(seconds)) return seconds >= 0 ? Math.ceil(seconds * 1000) : undefined;
  const date = Date.parse(value);
  const sentAt = Date.parse(first(headers["date"]) ?? "");
  return Number.isNaN(date) ? undefined : Math.max(0, date - (Number.isNaN(sentAt) ? now : sentAt));
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.[0];
}

/** The gateway's own id of a request, for its operators; at most 80 characters. */
export function requestIdOf(headers: Headers, scrub: Scrub): string | undefined {
  const id = first(headers["x-request-id"]);
  return id === undefined ? undefined : scrub(id, 80);
}

/**
 * The typed error of a failed answer. `detail` has `model`, `status`, `gatewayMessage` (scrubbed, at most 300
 * characters), `parameter` and `requestId` where known.
 */
export function toAttemptError(answer: FailedAnswer, scrub: Scrub): AttemptError {
  const { operation, model, info, headers } = answer;
  const status = effectiveStatus(answer.status, info);
  const code = codeOf(status, info, operation);
  const requestId = requestIdOf(headers, scrub);
  const retryAfterMs = readRetryAfter(headers);
  const reason = info?.code ?? info?.type;
  const failure = new ParleyError(
    code,
    `${operation} failed: status ${answer.status}${reason === undefined ? "" : ` (${scrub(reason, 60)})`}`,
    {
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      detail: {
        ...(model !== undefined && { model: scrub(model, 120) }),
        ...(status >= 400 && { status }),
        ...(info !== undefined && { gatewayMessage: scrub(info.message) }),
        ...(info?.param !== undefined && { parameter: scrub(info.param, 60) }),
        ...(requestId !== undefined && { requestId }),
      },
    },
  );
  return new AttemptError(failure, retryClassOf(status, code, headers), info);
}

function retryClassOf(status: number, code: ErrorCode, headers: Headers): RetryClass {
  if (code === "gateway-payment" || code === "gateway-refused" || code === "gateway-unknown-model")
    return "never";
  if (code === "gateway-context-length" || code === "gateway-unsupported") return "never";
  const advice = first(headers["x-should-retry"])?.toLowerCase();
  if (advice === "false") return "never";
  if (status === 429 || status === 503) return "busy";
  if (retriableStatuses.has(status)) return "transient";
  return advice === "true" ? "transient" : "never";
}

function codeOf(status: number, info: ErrorInfo | undefined, operation: Operation): ErrorCode {
  const words =
    info === undefined
      ? ""
      : [info.code ?? "", info.type ?? "", info.message].map((word) => word.slice(0, 1000)).join(" ");
  if (status === 402 || ((status === 429 || status === 403) && quota.test(words))) return "gateway-payment";
  if (status === 401) return "gateway-unauthorized";
  if (status === 408 || status === 504 || status === 522 || status === 524) return "gateway-timeout";
  if (status === 429) return "gateway-rate-limited";
  if (status < 400) return "gateway-bad-answer";
  // llama.cpp and others answer what a model does not take with 500.
  const isAboutRequest = status < 500 || status === 501 || (status === 500 && info?.message !== undefined);
  if (isAboutRequest && contextLength.test(words)) return "gateway-context-length";
  if (status === 500 && isAboutRequest && unsupported.test(words)) return "gateway-unsupported";
  if (status >= 500 && status !== 501) return "gateway-error";
  if (refusal.test(words)) return "gateway-refused";
  if (unsupported.test(words)) return "gateway-unsupported";
  if (operation !== "models" && (info?.code === "model_not_found" || unknownModel.test(words)))
    return "gateway-unknown-model";
  if (status === 403) return "gateway-unauthorized";
  if (status === 404 || status === 405 || status === 501) return "gateway-unsupported";
  return "gateway-bad-request";
}

const unconnectedCodes = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** The typed error of a connection that could not be opened or was lost. */
export function toConnectionError(
  cause: unknown,
  operation: Operation,
  model: string | undefined,
): AttemptError {
  const code = systemCode(cause);
  const isUnconnected = code !== undefined && (unconnectedCodes.has(code) || code.startsWith("ERR_TLS"));
  const failure = new ParleyError(
    "gateway-unreachable",
    `${operation} failed: ${isUnconnected ? "no connection" : "the connection was lost"} (${code ?? "unknown"})`,
    {
      cause,
      detail: { ...(model !== undefined && { model }), ...(code !== undefined && { reason: code }) },
    },
  );
  // A bad certificate stays bad within seconds.
  if (code !== undefined && /^(?:ERR_TLS|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)/.test(code))
    return new AttemptError(failure, "never");
  return new AttemptError(failure, isUnconnected ? "unconnected" : "lost");
}

/** The `code` of a system or undici error: of the error, its cause or its aggregated errors. */
function systemCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  if (error instanceof AggregateError) return error.errors.map(systemCode).find((code) => code !== undefined);
  return error instanceof Error ? systemCode(error.cause) : undefined;
}
