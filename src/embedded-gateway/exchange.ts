import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createSseWriter, type SseWriter } from "../support/sse-writer.ts";
import type { ApiError } from "./api-error.ts";

/** One HTTP request and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** Sent back as `x-request-id` and forwarded to upstreams. */
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

/** Times of a stream, in milliseconds. */
export interface StreamTimes {
  /** Silence after which a comment is sent. */
  readonly pingMs: number;
  /** A client that reads nothing for so long is disconnected. */
  readonly stalledMs: number;
}

/** Sends the last event of a stream and ends it. The client may be gone already, and then nothing is left to do. */
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
  const controller = new AbortController();
  response.once("close", () => controller.abort(new Error("client disconnected")));
  const given = request.headers["x-request-id"];
  const requestId =
    typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${randomUUID()}`;
  let stream: SseWriter | undefined;

  const sendBytes: Exchange["sendBytes"] = (status, bytes, headers) => {
    response.writeHead(status, {
      "x-request-id": requestId,
      "content-length": String(Buffer.byteLength(bytes)),
      "x-content-type-options": "nosniff",
      ...headers,
    });
    response.end(request.method === "HEAD" ? undefined : bytes);
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
    signal: controller.signal,
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
