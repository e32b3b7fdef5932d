import type { IncomingMessage } from "node:http";

/** How much of an unread request is discarded after its answer. */
export interface DrainLimits {
  readonly maxBytes: number;
  readonly maxMs: number;
}

const lingerMs = 1000;

/**
 * Discards the unread rest of a refused request, since many clients read the answer only after they have sent
 * everything. Past the bytes nothing more is read; past the time the connection is closed, a second after the bytes.
 */
export function drainRequest(request: IncomingMessage, { maxBytes, maxMs }: DrainLimits): void {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  let bytes = 0;
  let timer = setTimeout(() => socket.destroy(), maxMs);
  timer.unref();
  // An unfinished multipart reader would keep the request paused.
  request.removeAllListeners("readable");
  request.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= maxBytes || request.isPaused()) return;
    request.pause();
    clearTimeout(timer);
    // The client still gets the answer: a reset would take it away.
    timer = setTimeout(() => socket.destroy(), lingerMs);
    timer.unref();
  });
  request.once("close", () => clearTimeout(timer));
  request.once("end", () => clearTimeout(timer));
  request.resume();
}
