import type { ServerResponse } from "node:http";
import { nextPiece } from "../pieces.ts";

/** Server-sent events to one client. The stream stops by itself when the client disconnects. */
export interface SseWriter {
  /**
   * Sends an event. It returns a promise if the client reads too slowly. Await it before the next event, or
   * memory grows. It rejects if the client disconnects or does not read for `stalledMs`.
   */
  send(data: string, fields?: SseFields): Promise<void> | undefined;
  /**
   * Sends an event of any length whose data comes in pieces of one line together. Nothing else may be sent
   * until it resolves. It rejects as `send` does.
   */
  sendInPieces(pieces: Iterable<string>, fields?: SseFields): Promise<void>;
  /** Sends an event without waiting. A client with over `maxBufferedBytes` of unread data is disconnected. */
  push(data: string, fields?: SseFields): void;
  end(): void;
}

/** Optional fields of an event, each of which is a single line. */
interface SseFields {
  /** Browsers send it back as `Last-Event-ID` when they reconnect. */
  readonly id?: string;
  /** The name of the event. Default `message`. */
  readonly event?: string;
}

/** The options of an event stream. Times are in milliseconds. */
interface SseWriterOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** After this silence a comment is sent, so that proxies keep the connection open. Default 15 s. */
  readonly pingMs?: number;
  /** Default 60 s. */
  readonly stalledMs?: number;
  /** Default 4 MiB. */
  readonly maxBufferedBytes?: number;
  /** The delay before browsers reconnect. By default they choose it. */
  readonly retryMs?: number;
}

/**
 * Starts an event stream. It sends status 200 and the headers at once.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createSseWriter(response: ServerResponse, options: SseWriterOptions = {}): SseWriter {
  const { pingMs = 15_000, stalledMs = 60_000, maxBufferedBytes = 4 * 1024 * 1024 } = options;
  response.writeHead(200, {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    // This keeps nginx from buffering events.
    "x-accel-buffering": "no",
    ...options.headers,
  });
  response.flushHeaders();
  if (options.retryMs !== undefined) response.write(`retry: ${options.retryMs}\n\n`);

  let isSilent = true;
  let isBlocked = false;
  const ping = setInterval(() => {
    if (isSilent && !isBlocked) response.write(": ping\n\n");
    isSilent = true;
  }, pingMs);
  ping.unref();
  response.once("close", () => clearInterval(ping));

  const write = (data: string, fields: SseFields | undefined): boolean => {
    isSilent = false;
    return response.write(toEvent(data, fields));
  };

  return {
    send: (data, fields) => {
      if (write(data, fields)) return undefined;
      isBlocked = true;
      return drained(response, stalledMs).finally(() => (isBlocked = false));
    },
    async sendInPieces(pieces, fields) {
      isBlocked = true;
      try {
        response.write(toHead(fields));
        for (const piece of pieces) {
          await nextPiece();
          if (!response.write(piece)) await drained(response, stalledMs);
        }
        response.write("\n\n");
      } finally {
        isBlocked = false;
      }
    },
    push: (data, fields) => {
      write(data, fields);
      if (response.writableLength > maxBufferedBytes) response.destroy();
    },
    end: () => {
      clearInterval(ping);
      response.end();
    },
  };
}

function toEvent(data: string, fields: SseFields | undefined): string {
  const lines = /[\r\n]/.test(data) ? data.replaceAll(/\r\n?|\n/g, "\ndata: ") : data;
  return `${toHead(fields)}${lines}\n\n`;
}

/** What stands before the data of an event. */
function toHead({ id, event }: SseFields = {}): string {
  return `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}data: `;
}

function drained(response: ServerResponse, stalledMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => response.destroy(), stalledMs);
    const settle = (): void => {
      clearTimeout(timer);
      response.off("drain", settle);
      response.off("close", settle);
      if (response.destroyed || response.closed) reject(new Error("client disconnected or stalled"));
      else resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
    if (response.destroyed) settle();
  });
}
