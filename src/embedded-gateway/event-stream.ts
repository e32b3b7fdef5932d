import type { ServerResponse } from "node:http";
import type { StreamTimes } from "./exchange.ts";

/** Server-sent events on their way to one client. */
export interface EventStream {
  /**
   * Sends one `data:` event. Answers a promise where the client reads slower than we write: await it before the
   * next one, or memory grows. It rejects when the client has left or has taken nothing for too long.
   */
  send(data: string): Promise<void> | undefined;
  end(): void;
}

/**
 * Starts the stream: headers are sent at once; a comment follows each `pingMs` of silence, which clients skip and
 * proxies take for life.
 */
export function createEventStream(
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
  times: StreamTimes,
): EventStream {
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    ...headers,
  });
  response.flushHeaders();
  let hasSpoken = false;
  let isBlocked = false;
  const ping = setInterval(() => {
    if (!hasSpoken && !isBlocked) response.write(": ping\n\n");
    hasSpoken = false;
  }, times.pingMs);
  ping.unref();
  response.once("close", () => clearInterval(ping));

  return {
    send: (data) => {
      hasSpoken = true;
      if (response.write(`data: ${data}\n\n`)) return undefined;
      isBlocked = true;
      return drained(response, times.stalledClientMs).finally(() => (isBlocked = false));
    },
    end: () => {
      clearInterval(ping);
      response.end();
    },
  };
}

function drained(response: ServerResponse, stalledClientMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => response.destroy(), stalledClientMs);
    const settle = (): void => {
      clearTimeout(timer);
      response.off("drain", settle);
      response.off("close", settle);
      if (response.destroyed || response.closed) reject(new Error("The client has left or does not read."));
      else resolve();
    };
    response.on("drain", settle);
    response.on("close", settle);
    if (response.destroyed) settle();
  });
}

/**
 * Resolves when the answer has left for the client, or the client has. One that takes nothing of it for so long is
 * cut off: it would hold the connection, and a stop, for ever.
 */
export async function flushed(response: ServerResponse, stalledClientMs: number): Promise<void> {
  if (response.writableFinished || response.destroyed) return;
  let left = response.socket?.writableLength ?? 0;
  const timer = setInterval(() => {
    const now = response.socket?.writableLength ?? 0;
    if (now >= left) response.destroy();
    left = now;
  }, stalledClientMs);
  await new Promise((resolve) => response.once("close", resolve));
  clearInterval(timer);
}
