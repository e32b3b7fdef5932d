import type { ServerResponse } from "node:http";

/** Server-sent events to one client. The stream stops by itself when the client disconnects. */
export interface SseWriter {
  /**
   * Sends one event, with backpressure: returns a promise when the client reads slower than events are sent. Await it
   * before the next event, or memory grows. It rejects when the client disconnects or does not read for `stalledMs`.
   */
  send(data: string, fields?: SseFields): Promise<void> | undefined;
  /** Sends one event without backpressure. A client with more than `maxBufferedBytes` unread is disconnected. */
  push(data: string, fields?: SseFields): void;
  end(): void;
}

/** Optional fields of an event: a single line each. */
interface SseFields {
  /** Sent back by browsers as `Last-Event-ID` when they reconnect. */
  readonly id?: string;
  /** Event name. Default `message`. */
  readonly event?: string;
}

/** Times are in milliseconds. */
interface SseWriterOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Silence after which a comment is sent, which keeps proxies from closing the connection. Default 15 s. */
  readonly pingMs?: number;
  /** Default 60 s. */
  readonly stalledMs?: number;
  /** Default 4 MiB. */
  readonly maxBufferedBytes?: number;
  /** Delay before browsers reconnect. Default: theirs. */
  readonly retryMs?: number;
}

/**
 * Starts an event stream: status 200 and headers are sent at once.
 * @see https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createSseWriter(response: ServerResponse, options: SseWriterOptions = {}): SseWriter {
  const { pingMs = 15_000, stalledMs = 60_000, maxBufferedBytes = 4 * 1024 * 1024 } = options;
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    // Stops nginx from collecting events before it passes them on.
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

function toEvent(data: string, { id, event }: SseFields = {}): string {
  const lines = /[\r\n]/.test(data) ? data.replaceAll(/\r\n?|\n/g, "\ndata: ") : data;
  return `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}data: ${lines}\n\n`;
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
