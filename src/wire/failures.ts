import { ParleyError, type ErrorCode } from "../core/errors.ts";
import type { Operation } from "../core/gateway.ts";
import { systemClock } from "../support/clock.ts";

/** The headers of an answer, with lower-case names. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Where a gateway redirects to, without a query. `isBase` says that it can take the base address's place. */
export interface Redirect {
  readonly redirectsTo: string;
  readonly isBase?: 1;
}

/** A failed answer. `status` is 200 for an error inside a successful answer. */
interface FailedAnswer {
  readonly operation: Operation;
  readonly model: string | undefined;
  readonly status: number;
  readonly headers: Headers;
  readonly info: ErrorInfo | undefined;
  readonly redirectsTo?: Redirect | undefined;
}

const contextLength = new RegExp(
  [
    // OpenAI, vLLM, llama.cpp, LM Studio, MiniMax, DeepSeek.
    "context[_ -]?(?:length|window|size|limit)",
    "maximum (?:context|model length|prompt length|input length)",
    "too many (?:input )?tokens",
    // Anthropic, Bedrock, Groq, older vLLM ("The decoder prompt (length 9000) is longer than …").
    "(?:prompt|input|request|messages)[^.]{0,30} (?:is )?(?:too long|too large|longer than)",
    "exceed\\w{0,10}\\W.{0,40}\\b(?:tokens?|max(?:imum)? length)\\b",
    "reduce the length",
    "max_(?:completion_)?tokens must be at least 1, got -",
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
  /\bmodel\b.{0,100}?(?:not found|does(?:n't| not) exist|not exist|no longer|is not available|unavailable|is not a valid|not supported by any)|(?:unknown|invalid|no such|not a valid|unrecognized|unsupported) model|no endpoints found for/is;
const refusal =
  /content[_ ](?:filter|policy|management)|content_policy|safety (?:system|filter|setting)|moderation|flagged|responsible.?ai|prohibited.?content|inappropriate content|敏感内容|不安全/i;
const badKey = /api[ _-]?key (?:is )?(?:not valid|invalid)|(?:invalid|incorrect) api[ _-]?key/i;
/** Matches a limit of the answer that is larger than the model's, which sounds like a long conversation. */
const outputLimit = /max_(?:completion_)?tokens`? must be less than or equal to/i;
const noBalance = /insufficient[_ ](?:\w{1,20}[_ ])?(?:quota|credit|balance|funds)/i;
const quota = new RegExp(`${noBalance.source}|billing|exceeded your current quota|budget`, "i");
const unsupported =
  /(?:does(?:n't| not)|do(?:n't| not)|cannot|not) (?:support|accept|allow)\w{0,10}.{0,60}\b(?:image|vision|audio|modalit|operation|endpoint)|support(?:s)? (?:image|audio) input|(?:image|vision|audio)\S{0,30} (?:input )?(?:is|are) not supported|only supports? text|at most 0 (?:image|audio)|not a multi-?modal|unknown variant `?image_url|image_url[^.]{0,40}(?:only supported|not supported)|content[^.]{0,20} must be a string|invalid type: sequence, expected a string|any variant of untagged enum \w{0,40}content|invalid content type[^.]{0,20}image/i;

/** Matches what {@link unsupported} words are about where they are about all pictures of a request. */
const aboutPictures =
  /image|vision|multi-?modal|must be a string|expected a string|valid string|untagged enum/i;
/** Matches words about a number, a size or a kind of pictures. Others may then be accepted. */
const aboutSomePictures =
  /more than|at most [1-9]|multiple|several|too many|single|format|\burls?\b|media type|mime|\bsize|too large|larger|resolution|pixel|dimension|image\/[a-z]/i;
/** Matches words about the length of a prompt. Others of a 413 mean the bytes of a request. */
const aboutTokens = /tokens?\b|context|length|prompt/i;

const retriableStatuses = new Set([408, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529]);

const statusOfType: ReadonlyMap<string, number> = new Map(
  Object.entries({
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
  }),
);

/** Returns an error's status. In a successful answer it comes from code, type and words. Default 500. */
function effectiveStatus(status: number, info: ErrorInfo | undefined): number {
  if (status >= 300 || info === undefined) return status;
  const code = Number(info.code);
  if (Number.isInteger(code) && code >= 400 && code < 600) return code;
  const told = /\b(?:error|status) code:? ?([45]\d\d)\b/i.exec(info.message.slice(0, 200))?.[1];
  return statusOfType.get(info.code ?? "") ?? statusOfType.get(info.type ?? "") ?? Number(told ?? 500);
}

/**
 * Returns the milliseconds from `retry-after-ms` or `retry-after` (seconds, or a date by the server's clock),
 * or `undefined` without a valid header.
 */
export function readRetryAfter(headers: Headers, now = systemClock.now()): number | undefined {
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

/** Returns the gateway's own id of a request, for its operators. It has at most 80 characters. */
export function requestIdOf(headers: Headers, scrub: Scrub): string | undefined {
  const id = first(headers["x-request-id"]);
  return id === undefined ? undefined : scrub(id, 80);
}

/**
 * Makes the typed error of a failed answer. `detail` has `model`, `status`, `gatewayMessage` (scrubbed, at
 * most 300 characters), `parameter` and `requestId` where known, and `lacks`: "pictures" where the words say
 * that the model takes no pictures at all, "models" where there is no list of models. A redirect adds its
 * {@link Redirect}.
 */
export function toAttemptError(answer: FailedAnswer, scrub: Scrub): AttemptError {
  const { operation, model, info, headers } = answer;
  const status = effectiveStatus(answer.status, info);
  const code = codeOf(status, info, operation);
  const requestId = requestIdOf(headers, scrub);
  const isBusy = status === 429 || status === 503;
  const retryAfterMs = readRetryAfter(headers) ?? (isBusy ? info?.retryAfterMs : undefined);
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
        ...(answer.redirectsTo !== undefined && {
          ...answer.redirectsTo,
          redirectsTo: scrub(answer.redirectsTo.redirectsTo, 200),
        }),
        ...(code === "gateway-unsupported" && takesNoPictures(info) && { lacks: "pictures" }),
        ...(code === "gateway-unsupported" && operation === "models" && { lacks: "models" }),
      },
    },
  );
  return new AttemptError(failure, retryClassOf(status, code, headers), answer);
}

function takesNoPictures(info: ErrorInfo | undefined): boolean {
  const words = info?.message.slice(0, 1000) ?? "";
  return aboutPictures.test(words) && !aboutSomePictures.test(words);
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
  // A server that asks only for a pause means the quota of a minute or a day.
  const isQuota = noBalance.test(words) || (quota.test(words) && info?.retryAfterMs === undefined);
  if (status === 402 || ((status === 429 || status === 403) && isQuota)) return "gateway-payment";
  if (status === 500 && noBalance.test(words)) return "gateway-payment";
  if (status === 401 || (status === 400 && badKey.test(words))) return "gateway-unauthorized";
  if (status === 408 || status === 504 || status === 522 || status === 524) return "gateway-timeout";
  // The request exceeds the tokens of a minute. No pause helps, but a shorter request does.
  if (status === 429)
    return /request too large/i.test(words) ? "gateway-context-length" : "gateway-rate-limited";
  if (status < 400) return "gateway-bad-answer";
  // llama.cpp and others answer with 500 to what a model does not take.
  const isAboutRequest = status < 500 || status === 501 || (status === 500 && info?.message !== undefined);
  // Proxies refuse the bytes of pictures.
  const isAboutBytes = status === 413 && (info?.isPage === true || !aboutTokens.test(words));
  if (isAboutRequest && !isAboutBytes && contextLength.test(words) && !outputLimit.test(words))
    return "gateway-context-length";
  if (status === 500 && isAboutRequest && unsupported.test(words)) return "gateway-unsupported";
  if (status >= 500 && status !== 501) return "gateway-error";
  if (refusal.test(words)) return "gateway-refused";
  if (unsupported.test(words)) return "gateway-unsupported";
  if (operation !== "models" && (info?.code === "model_not_found" || unknownModel.test(words)))
    return "gateway-unknown-model";
  if (status === 403) return info?.isPage === true ? "gateway-bad-answer" : "gateway-unauthorized";
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

/** Makes the typed error of a connection that could not be opened or was lost. */
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
  // A bad certificate stays bad, so that a retry is useless.
  if (code !== undefined && /^(?:ERR_TLS|CERT_|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)/.test(code))
    return new AttemptError(failure, "never");
  return new AttemptError(failure, isUnconnected ? "unconnected" : "lost");
}

/** Returns the `code` of a system or undici error, its cause or its aggregated errors. */
function systemCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  if ("code" in error && typeof error.code === "string") return error.code;
  if (error instanceof AggregateError) return error.errors.map(systemCode).find((code) => code !== undefined);
  return error instanceof Error ? systemCode(error.cause) : undefined;
}

const tokenLike = /\b(?:sk|pk|rk|key|gsk|xox[abprs])-[\w*.-]{4,}/gi;
const bearer = /\b(?:bearer|basic)\s+[\w~+/.*=-]{4,}/gi;
/** Matches a whole URL, so that each character is read once. {@link toPublicUrl} then cuts it. */
const url = /(\b[a-z][a-z\d+.-]{0,30}:\/\/)([^\s"'<>]*)/gi;
const dataUri = /data:[\w/+.-]{0,100}(?:;[\w=-]{1,100}){0,8},[^\s"')]*/gi;
// oxlint-disable-next-line no-control-regex -- control characters are what it removes
const control = /[\u0000-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2066-\u2069\uFEFF]+/g;

/** Returns a URL without query, fragment and user info. */
function toPublicUrl(_whole: string, scheme: string, rest: string): string {
  const end = rest.search(/[?#]/);
  const address = end === -1 ? rest : rest.slice(0, end);
  const path = address.indexOf("/");
  const at = address.lastIndexOf("@", path === -1 ? address.length : path);
  return scheme + address.slice(at + 1);
}

/** Makes text from the gateway safe to show and to log. */
export type Scrub = (text: string, maxChars?: number) => string;

/**
 * Creates a function that removes the API key, anything like a token or a Bearer header, queries and user
 * info of URLs, data URIs and control characters. It cuts the text to `maxChars` (default 300).
 */
export function createScrub(apiKey: string | undefined): Scrub {
  // A shorter key would match ordinary words.
  const secrets =
    apiKey === undefined || apiKey.length < 4 ? [] : [...new Set([apiKey, encodeURIComponent(apiKey)])];
  return (text, maxChars = 300) => {
    // The result is short, but answers can be megabytes.
    let clean = text.slice(0, 8000);
    for (const secret of secrets) clean = clean.replaceAll(secret, "[key]");
    clean = clean
      .replace(dataUri, "[data]")
      .replace(bearer, "[key]")
      .replace(tokenLike, "[key]")
      .replace(url, toPublicUrl)
      .replace(control, " ")
      .replace(/ {2,}/g, " ")
      .trim();
    if (clean.length <= maxChars) return clean;
    const cut = clean.slice(0, maxChars - 1);
    // This keeps surrogate pairs whole.
    return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
  };
}

/** The message of an error without words. */
export const noReason = "the gateway gave no reason";

/** The fields of an error body, whatever its shape. They are not scrubbed. */
export interface ErrorInfo {
  readonly message: string;
  readonly type?: string;
  /** The code as text, even when the gateway sent a number. */
  readonly code?: string;
  readonly param?: string;
  /** The pause that the body asks for, in words or in a field. */
  readonly retryAfterMs?: number;
  /** Whether it is a web page, which a proxy has put in place of the gateway's answer. */
  readonly isPage?: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** Whether `value` is an object and no array. */
export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Finds the error in a parsed body or stream event: `{error:{…}}`, `{error:"…"}`, `{object:"error"}`,
 * `{detail:…}`, `{errors:[…]}`, `[{error}]`, `{status:"failure",message}`, MiniMax's `base_resp`, a bare
 * `{message}` or `{code,msg}`, or one inside the first choice. Returns `undefined` when there is none.
 */
export function readError(value: unknown): ErrorInfo | undefined {
  // Only the first level of nested arrays is read, since 10,000 levels would exhaust the stack.
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  for (const item of items.slice(0, 100)) {
    const info = isFields(item) ? readError(item) : undefined;
    if (info !== undefined) return info;
  }
  if (!isFields(value)) return undefined;
  const own = value["error"];
  if (own !== undefined && own !== null && own !== false && own !== "") return fromError(own, value);
  const { base_resp: verdict, choices } = value;
  if (isFields(verdict) && typeof verdict["status_code"] === "number" && verdict["status_code"] !== 0)
    return fromFields({ message: verdict["status_msg"], code: verdict["status_code"] });
  const isAnswer = Array.isArray(choices) && (choices.length > 0 || !isBareError(value));
  if (isAnswer && value["object"] !== "error") {
    const first: unknown = choices[0];
    const inChoice = isFields(first) ? first["error"] : undefined;
    return inChoice === undefined || inChoice === null ? undefined : fromError(inChoice, value);
  }
  if (value["object"] === "error" || value["type"] === "error") return fromFields(value);
  if (value["status"] === "failure" || value["status"] === "error") return fromFields(value);
  if ((value["data"] ?? value["text"] ?? value["models"] ?? undefined) !== undefined) return undefined;
  if (value["detail"] !== undefined && value["detail"] !== null) return fromDetail(value["detail"]);
  const errors = value["errors"];
  if (Array.isArray(errors) && errors.length > 0) return fromError(errors[0], value);
  return typeof value["message"] === "string" || isBareError(value) ? fromFields(value) : undefined;
}

/** Whether these are fields of an error that is not called one: `{code, message}` or `{code, msg}`. */
function isBareError(value: Fields): boolean {
  const { code } = value;
  const isFailure =
    (typeof code === "number" || typeof code === "string") && !/^(?:0{0,4}|200|ok|success)$/i.test(`${code}`);
  return hasErrorWords(value) && (isFailure || value["error_msg"] !== undefined);
}

/** Whether a field has the words of an error. */
export function hasErrorWords({ message, error_msg, msg }: Fields): boolean {
  return [message, error_msg, msg].some((words) => typeof words === "string" && words !== "");
}

function fromError(error: unknown, around: Fields): ErrorInfo {
  if (isFields(error)) return fromFields(error);
  if (typeof error === "string") return { ...fromFields(around), message: error };
  return fromFields(around);
}

function fromFields(fields: Fields): ErrorInfo {
  const { type, code, param } = fields;
  const text = wordsOf(fields);
  const inner = readInner(text);
  const retryAfterMs = readPause(text, fields["details"]) ?? inner?.retryAfterMs;
  return {
    message: inner?.message ?? text,
    ...(typeof type === "string" && type !== "" && { type }),
    ...((typeof code === "number" || (typeof code === "string" && code !== "")) && { code: String(code) }),
    ...(typeof param === "string" && { param }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  };
}

/** OpenRouter puts the provider's own words beside a sentence that says nothing. */
function wordsOf({ message, error, error_msg, msg, metadata }: Fields): string {
  const raw = isFields(metadata) ? metadata["raw"] : undefined;
  if (message === "Provider returned error" && typeof raw === "string" && raw !== "") return raw;
  if (typeof message === "string") return message;
  const words = error ?? error_msg ?? msg;
  return typeof words === "string" ? words : noReason;
}

/** Longer words are no error inside an error. */
const maxInnerChars = 20_000;

/** Reads a provider's error that is JSON in the words of the gateway. */
function readInner(text: string): ErrorInfo | undefined {
  if (!text.startsWith("{") || text.length > maxInnerChars) return undefined;
  try {
    return readError(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

const duration =
  "\\d{1,9}(?:\\.\\d{1,12})? ?(?:ms|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])";
const pauseWords = new RegExp(`(?:try again|retry) (?:in|after) ((?:${duration} ?){1,3})`, "i");
const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000 };

/** Reads "try again in 1m26.4s" of OpenAI, Groq and Azure, and the `retryDelay` among Google's details. */
function readPause(words: string, details: unknown): number | undefined {
  const items = Array.isArray(details) ? (details as unknown[]).slice(0, 20) : [];
  const field = items.map((item) => (isFields(item) ? item["retryDelay"] : undefined)).find(Boolean);
  const text = typeof field === "string" ? field.slice(0, 100) : pauseWords.exec(words.slice(0, 1000))?.[1];
  const parts = [...(text ?? "").matchAll(new RegExp(duration, "gi"))];
  if (parts.length === 0) return undefined;
  const total = parts.reduce((sum, [part]) => {
    const unit = part.replaceAll(/[\d. ]/g, "").toLowerCase();
    return sum + Number.parseFloat(part) * (unit === "ms" ? 1 : (unitMs[unit.charAt(0)] ?? 0));
  }, 0);
  return Math.ceil(total);
}

/** Reads FastAPI's shape: a sentence, or a list of `{loc, msg}`. */
function fromDetail(detail: unknown): ErrorInfo {
  if (typeof detail === "string") return { message: detail };
  const first: unknown = Array.isArray(detail) ? detail[0] : detail;
  if (!isFields(first)) return { message: noReason };
  const location: unknown = Array.isArray(first["loc"]) ? first["loc"].at(-1) : undefined;
  if (typeof first["msg"] !== "string") return fromError(first["error"] ?? first, first);
  return { message: first["msg"], ...(typeof location === "string" && { param: location }) };
}

/**
 * What a retry may achieve. `unconnected`: no byte of the request was sent. `lost`: the connection broke
 * later. `busy`: with status 429 or 503 the gateway did nothing. `transient`: another status that often
 * passes. `timeout`: a timer ran out. `never`: a retry fails the same way.
 */
export type RetryClass = "unconnected" | "lost" | "busy" | "transient" | "timeout" | "never";

/** A failed attempt, for the retry loop and its callers, which unwrap {@link AttemptError.failure}. */
export class AttemptError extends Error {
  readonly failure: ParleyError;
  readonly retryClass: RetryClass;
  /** The answer that failed, with its error as it was sent. It may be matched, but never shown or logged. */
  readonly answer: FailedAnswer | undefined;

  constructor(failure: ParleyError, retryClass: RetryClass, answer?: FailedAnswer) {
    super(failure.message, { cause: failure });
    this.name = "AttemptError";
    this.failure = failure;
    this.retryClass = retryClass;
    this.answer = answer;
  }
}
