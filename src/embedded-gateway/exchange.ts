import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ApiError } from "./api-error.ts";
import { createEventStream, type EventStream } from "./event-stream.ts";

/** One request and its answer. */
export interface Exchange {
  readonly request: IncomingMessage;
  /** Sent back as `x-request-id` and forwarded to upstreams. */
  readonly requestId: string;
  /** Aborts when the client has left. */
  readonly signal: AbortSignal;
  /** Where the client reached this server, e.g. `http://127.0.0.1:8787`. */
  readonly origin: string;
  /** Whether a status has been sent, so that an error can no longer change it. */
  hasAnswered(): boolean;
  sendJson(status: number, body: unknown, headers?: Readonly<Record<string, string>>): void;
  sendBytes(status: number, bytes: Uint8Array | string, headers: Readonly<Record<string, string>>): void;
  /** The envelope where nothing was sent yet, otherwise an error event at the end of the stream, and no `[DONE]`. */
  sendError(error: ApiError): void;
  /** Server-sent events. The second call answers the same stream. */
  openStream(headers?: Readonly<Record<string, string>>): EventStream;
}

/** Times of a stream, in milliseconds. */
export interface StreamTimes {
  /** Silence after which a comment is sent. */
  readonly pingMs: number;
  /** How long a client may take nothing before it is cut off. */
  readonly stalledClientMs: number;
}

/** The exchange of a request that has just come in. */
export function createExchange(
  request: IncomingMessage,
  response: ServerResponse,
  times: StreamTimes,
): Exchange {
  const controller = new AbortController();
  response.once("close", () => controller.abort(new Error("The client has left.")));
  const given = request.headers["x-request-id"];
  const requestId =
    typeof given === "string" && /^[\w.:-]{1,128}$/.test(given) ? given : `req_${randomUUID()}`;
  let stream: EventStream | undefined;

  const sendBytes: Exchange["sendBytes"] = (status, bytes, headers) => {
    response.writeHead(status, {
      "x-request-id": requestId,
      "content-length": String(Buffer.byteLength(bytes)),
      ...headers,
    });
    response.end(request.method === "HEAD" ? undefined : bytes);
  };
  const sendJson: Exchange["sendJson"] = (status, body, headers) =>
    sendBytes(status, JSON.stringify(body), { "content-type": "application/json", ...headers });

  return {
    request,
    requestId,
    signal: controller.signal,
    origin: `http://${request.headers.host ?? "localhost"}`,
    hasAnswered: () => response.headersSent,
    sendJson,
    sendBytes,
    sendError: (error) => {
      if (!response.headersSent) return sendJson(error.status, error.toEnvelope(), error.headers);
      if (stream === undefined) return void response.destroy();
      void stream.send(JSON.stringify(error.toEnvelope()));
      stream.end();
    },
    openStream: (headers) => {
      stream ??= createEventStream(response, { ...headers, "x-request-id": requestId }, times);
      return stream;
    },
  };
}
