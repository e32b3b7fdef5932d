import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { send, whenClosed } from "../support/http/server.ts";
import { createSseWriter, type SseWriter } from "../support/http/event-stream.ts";

/** The optional fields of an {@link ApiError}. */
interface ApiErrorOptions {
  /** The invalid parameter, e.g. `messages[0].content[1].image_url.url`. */
  readonly param?: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The error body of the OpenAI convention. */
interface ErrorEnvelope {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/**
 * An error response to the HTTP client: status, additional headers and the envelope
 * `{error:{message,type,param,code}}`. It is no ParleyError, since it never leaves the server in another
 * form. The gateway client creates that one.
 */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly param: string | undefined;
  readonly code: string | undefined;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, type: string, message: string, options: ApiErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.param = options.param;
    this.code = options.code;
    this.headers = options.headers ?? {};
  }

  toEnvelope(): ErrorEnvelope {
    return {
      error: { message: this.message, type: this.type, param: this.param ?? null, code: this.code ?? null },
    };
  }
}

/** Makes a 400: the request is invalid. */
export function invalidRequest(message: string, options: ApiErrorOptions = {}): ApiError {
  return new ApiError(400, "invalid_request_error", message, options);
}

/** Makes a 404: the model is unknown. It has a suggestion where there is one. */
export function unknownModel(model: string, suggestion?: string): ApiError {
  const hint =
    suggestion === undefined
      ? "GET /v1/models lists all models; ids are case-sensitive."
      : `Did you mean '${suggestion}'?`;
  return new ApiError(404, "invalid_request_error", `The model '${clip(model)}' does not exist. ${hint}`, {
    param: "model",
    code: "model_not_found",
  });
}

/** Makes a 400: the model exists and does not support the operation. */
export function unsupportedModel(model: string, cannot: string): ApiError {
  return invalidRequest(`The model '${clip(model)}' cannot ${cannot}.`, {
    param: "model",
    code: "model_not_supported",
  });
}

/** Makes a 413: `what` is larger than the limit. */
export function tooLarge(what: string, maxBytes: number, param?: string): ApiError {
  const message = `${what} is larger than the limit of ${maxBytes} bytes.`;
  return new ApiError(413, "invalid_request_error", message, {
    code: "request_too_large",
    ...(param === undefined ? {} : { param }),
  });
}

/** Returns a client's text for an error message, cut at `maxChars`. */
export function clip(text: string, maxChars = 120): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars)}…`;
}

/** One HTTP request and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** It is sent back as `x-request-id` and forwarded to upstreams. */
  readonly requestId: string;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  /** Where the client reached this server, e.g. `http://127.0.0.1:8787`. */
  readonly origin: string;
  /** Whether a status has been sent, so that an error can no longer change it. */
  hasAnswered(): boolean;
  sendJson(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void;
  sendBytes(status: number, bytes: Uint8Array | string, headers: Readonly<Record<string, string>>): void;
  /** Sends the error envelope, or ends a stream that has begun with an error event and without `[DONE]`. */
  sendError(error: ApiError): void;
  /** Sends the error envelope, and disconnects a client that is still sending its body. */
  refuseRest(error: ApiError): void;
  /** Starts server-sent events. Later calls return the same stream. */
  openStream(headers?: Readonly<Record<string, string>>): SseWriter;
}

/** The times of a stream, in milliseconds. */
interface StreamTimes {
  /** The silence after which a comment is sent. */
  readonly pingMs: number;
  /** A client that reads nothing for this long is disconnected. */
  readonly stalledMs: number;
}

/** Sends the last event of a stream and ends it. If the client has gone, nothing is left to do. */
export function sendLast(stream: SseWriter, data: string): void {
  stream.send(data)?.catch(() => {});
  stream.end();
}

/** Wraps an incoming request and its response. */
export function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  times: StreamTimes,
): Exchange {
  const given = request.headers["x-request-id"];
  const requestId =
    typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${randomUUID()}`;
  let stream: SseWriter | undefined;

  const sendBytes: Exchange["sendBytes"] = (status, bytes, headers) => {
    send(response, status, bytes, {
      "x-request-id": requestId,
      "x-content-type-options": "nosniff",
      ...headers,
    });
  };
  const sendJson: Exchange["sendJson"] = (status, body, headers) =>
    sendBytes(status, JSON.stringify(body), { "content-type": "application/json", ...headers });

  const sendError: Exchange["sendError"] = (error) => {
    if (!response.headersSent) return sendJson(error.status, error.toEnvelope(), error.headers);
    if (stream === undefined) return void response.destroy();
    sendLast(stream, JSON.stringify(error.toEnvelope()));
  };

  return {
    request,
    requestId,
    signal: whenClosed(response),
    origin: `http://${request.headers.host ?? "localhost"}`,
    hasAnswered: () => response.headersSent,
    sendJson,
    sendBytes,
    sendError,
    refuseRest: (error) => {
      response.once("finish", () => request.destroy());
      sendError(error);
    },
    openStream: (headers) => {
      stream ??= createSseWriter(response, {
        headers: { ...headers, "x-request-id": requestId },
        ...times,
      });
      return stream;
    },
  };
}
