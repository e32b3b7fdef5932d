import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { withRetries } from "../../wire/attempt.ts";
import {
  AttemptError,
  createScrub,
  type ErrorInfo,
  type Headers,
  isFields,
  noReason,
  readError,
  toAttemptError,
} from "../../wire/failures.ts";
import {
  createTransport,
  type GatewayRequest,
  type GatewayResponse,
  parseJson,
  readText,
} from "../../wire/transport.ts";
import { ApiError, type Exchange } from "../api-error.ts";
import type { UpstreamConfig } from "../gateway-config.ts";
import type { LoadImage } from "../load-image.ts";
import type { Target } from "../router.ts";

/** One request to an upstream. */
interface UpstreamRequest extends Pick<GatewayRequest, "operation" | "path" | "accept" | "body"> {
  readonly requestId: string;
  readonly signal: AbortSignal;
}

/** An answer of an upstream with a success status and an unread body. */
export interface UpstreamAnswer extends GatewayResponse {
  /** Returns the body as text. @throws UpstreamFailure when it is too large or interrupted */
  text(maxBytes: number): Promise<string>;
  /** Returns the body as {@link parse} does. @throws UpstreamFailure when it is too large or interrupted */
  json(maxBytes: number): Promise<Record<string, unknown>>;
  /** Parses a text of it. @throws UpstreamFailure when it is not a JSON object, or holds an error */
  parse(text: string): Record<string, unknown>;
  /** Returns the failure that an error in it means. */
  toFailure(info: ErrorInfo): UpstreamFailure;
}

/** An HTTP client of one upstream, with its own connections. */
export interface UpstreamClient {
  /** Resolves with a success status. @throws UpstreamFailure for all else, or the signal's reason */
  request(request: UpstreamRequest): Promise<UpstreamAnswer>;
  close(): Promise<void>;
}

/** Creates a client that connects on first use. It follows no redirects, so the key reaches no other host. */
export function createUpstreamClient(prefix: string, config: UpstreamConfig, log: Log): UpstreamClient {
  const scrub = createScrub(config.apiKey);
  const transport = createTransport({
    baseUrl: new URL(config.baseUrl),
    apiKey: config.apiKey,
    connectMs: 10_000,
    silenceMs: config.timeoutMs,
    headers: { ...config.headers, "user-agent": "parley-gateway" },
    scrub,
    log: log.child({ prefix }),
  });
  /** @throws the signal's reason, or UpstreamFailure */
  const rethrow = (error: unknown): never => {
    if (!(error instanceof AttemptError)) throw error;
    throw error.answer === undefined
      ? toConnectionFailure(prefix, error)
      : toStatusFailure(prefix, error, (text) => scrub(text, maxMessageChars));
  };

  return {
    request: async ({ requestId, signal, ...request }) => {
      const attempt = {
        model: undefined,
        timeouts: { signal, progress: () => {}, alive: () => {} },
        callerSignal: signal,
      };
      const headers = { "x-request-id": requestId };
      const response = await transport.send({ ...request, ...attempt, headers }).catch(rethrow);
      const toFailure = (info: ErrorInfo): UpstreamFailure => {
        const { operation, model, headers } = response;
        const answer = { operation, model, status: 502, headers, info };
        return toStatusFailure(prefix, toAttemptError(answer, scrub), (words) =>
          scrub(words, maxMessageChars),
        );
      };
      const parse = (text: string): Record<string, unknown> => {
        const value = parseAnswer(prefix, text);
        const info = readError(value);
        if (info !== undefined) throw toFailure(info);
        return value;
      };
      const text = (maxBytes: number): Promise<string> =>
        readText(response, maxBytes).catch((error: unknown) => {
          throw error instanceof AttemptError ? toBodyFailure(prefix, error) : error;
        });
      return {
        ...response,
        text,
        json: async (maxBytes) => parse(await text(maxBytes)),
        parse,
        toFailure,
      };
    },
    close: () => transport.close(),
  };
}

/** How much of an error's words is passed on. */
const maxMessageChars = 2000;

function parseAnswer(prefix: string, text: string): Record<string, unknown> {
  const value = parseJson(text);
  if (value === undefined)
    throw toBrokenFailure(prefix, "sent an answer that is not JSON, or too complex", "upstream_bad_answer");
  if (!isFields(value))
    throw toBrokenFailure(prefix, "sent an answer that is not an object", "upstream_bad_answer");
  return value;
}

/** A failed attempt at an upstream, for the retry loop. */
export class UpstreamFailure extends AttemptError {
  /** The error for the client when no other attempt succeeds. */
  readonly toClient: ApiError;
  /** `connection`: the request was not sent. `status`: an error status. `broken`: an unreadable answer. */
  readonly kind: "connection" | "status" | "broken";

  constructor(kind: UpstreamFailure["kind"], toClient: ApiError, attempt: AttemptError) {
    super(attempt.failure, attempt.retryClass, attempt.answer);
    this.name = "UpstreamFailure";
    this.kind = kind;
    this.toClient = toClient;
  }
}

/** The upstream could not be reached, or disconnected. The cause is only logged, as it may hold addresses. */
function toConnectionFailure(prefix: string, attempt: AttemptError): UpstreamFailure {
  const isTimeout = String(attempt.failure.detail["reason"]).includes("TIMEOUT");
  const message = isTimeout
    ? `The upstream '${prefix}' did not answer in time.`
    : `The upstream '${prefix}' could not be reached.`;
  const error = new ApiError(isTimeout ? 504 : 502, "upstream_error", message, {
    code: isTimeout ? "upstream_timeout" : "upstream_unreachable",
    cause: attempt.failure.cause,
  });
  return new UpstreamFailure(attempt.retryClass === "unconnected" ? "connection" : "broken", error, attempt);
}

/** Makes the failure of an error status, or of an error in a successful answer. */
function toStatusFailure(
  prefix: string,
  attempt: AttemptError,
  scrub: (text: string) => string,
): UpstreamFailure {
  const { status = 502, headers = {}, info } = attempt.answer ?? {};
  // A 401 would blame the client's key, but the gateway's own key was rejected.
  if (status === 401 || status === 403) {
    const text = `The upstream '${prefix}' rejected the gateway's own key.`;
    const error = new ApiError(502, "upstream_error", text, { code: "upstream_unauthorized" });
    return new UpstreamFailure("status", error, attempt);
  }
  const retryAfter = headers["retry-after"];
  const shown = status < 400 || status > 599 ? 502 : status;
  const fallback = `The upstream '${prefix}' returned status ${status}.`;
  const error = new ApiError(
    shown,
    info?.type?.slice(0, maxMessageChars) ??
      (shown >= 500 ? "upstream_error" : shown === 429 ? "rate_limit_error" : "invalid_request_error"),
    info === undefined || info.isPage === true || info.message === noReason ? fallback : scrub(info.message),
    {
      ...(typeof retryAfter === "string" && /^[\w ,:.+-]{1,64}$/.test(retryAfter)
        ? { headers: { "retry-after": retryAfter } }
        : {}),
      ...(info?.param === undefined ? {} : { param: info.param.slice(0, maxMessageChars) }),
      code: info?.code?.slice(0, maxMessageChars) ?? `upstream_${status}`,
    },
  );
  return new UpstreamFailure("status", error, attempt);
}

function toBodyFailure(prefix: string, { failure }: AttemptError): UpstreamFailure {
  return failure.code === "gateway-bad-answer"
    ? toBrokenFailure(prefix, "sent an answer that is too large", "upstream_too_large", failure)
    : toBrokenFailure(prefix, "interrupted its answer", "upstream_interrupted", failure);
}

/** Makes the failure of an unreadable or interrupted answer. */
export function toBrokenFailure(
  prefix: string,
  problem: string,
  code: string,
  cause?: unknown,
): UpstreamFailure {
  const message = `The upstream '${prefix}' ${problem}.`;
  const failure = new ParleyError("gateway-bad-answer", message, { cause });
  const error = new ApiError(502, "upstream_error", message, { code, cause });
  return new UpstreamFailure("broken", error, new AttemptError(failure, "transient"));
}

/** For longer waits the client gets the error, with the upstream's own `Retry-After`. */
const maxWaitMs = 2000;

/**
 * Tries the targets in order, each with its retries, until one answers. Contract: `attempt` throws
 * UpstreamFailure only while nothing of an answer has been sent to the client.
 * @param isCostly whether a repeated request may be billed twice, so that it is retried only when it cannot
 *   have begun
 * @throws ApiError of the first target's last failure, since its model was requested, or the signal's reason
 */
export async function tryTargets<T>(
  forwarding: Forwarding,
  isCostly: boolean,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  const { targets, exchange } = forwarding;
  let first: UpstreamFailure | undefined;
  for (const target of targets) {
    try {
      return await withRetries(() => attempted(target, forwarding, attempt), {
        // A costly request is repeated by the rule of images: only when it cannot have begun.
        operation: isCostly ? "image" : "chat",
        rules: { maxAttempts: target.upstream.retries + 1, baseDelayMs: 200, maxDelayMs: maxWaitMs },
        deadlineAt: Number.POSITIVE_INFINITY,
        maxWaitMs,
        signal: exchange.signal,
        onRetry: () => {},
      });
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      first ??= error;
      if (isClientError(first)) break;
    }
  }
  throw first?.toClient ?? new Error("no target to try");
}

async function attempted<T>(
  target: Target,
  { exchange, log }: Forwarding,
  attempt: (target: Target) => Promise<T>,
): Promise<T> {
  try {
    return await attempt(target);
  } catch (error) {
    // Whatever failed then, the client has left a request that was sent.
    if (exchange.signal.aborted) throw error;
    if (error instanceof UpstreamFailure) {
      const { status, code } = error.toClient;
      log.warn({ model: target.publicId, status, code }, "upstream failed");
    }
    throw error;
  }
}

/** Whether the request itself is invalid, so that another model would reject it too. */
function isClientError(failure: UpstreamFailure): boolean {
  return failure.kind === "status" && [400, 413, 415, 422].includes(failure.toClient.status);
}

/** A client's request that is being forwarded. */
export interface Forwarding {
  readonly exchange: Exchange;
  readonly targets: readonly [Target, ...Target[]];
  readonly log: Log;
  /** The silence after which a waiting stream is opened with a comment, in milliseconds. */
  readonly pingMs: number;
  clientOf(target: Target): UpstreamClient;
  readonly loadImage: LoadImage;
  /** Whether a URL is one of this gateway's own pictures, which upstreams cannot reach. */
  isOwnPicture(url: string): boolean;
}

/** Returns headers that name the upstream of an answer, without those that are no valid header. */
export function toAnswerHeaders(target: Target, headers: Headers): Record<string, string> {
  const requestId = headers["x-request-id"];
  return {
    "x-upstream": target.prefix,
    ...(typeof requestId === "string" && /^[\w.:/=+-]{1,200}$/.test(requestId)
      ? { "x-upstream-request-id": requestId }
      : {}),
  };
}
