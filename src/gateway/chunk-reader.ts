import type { Readable } from "node:stream";

/** Reads a body by packets. */
export interface ChunkReader {
  /**
   * What has arrived since the last call, at least one packet; `undefined` at the end. A stream error is thrown after
   * all packets that arrived before it. `gatherMs`: packets are gathered until so long after the last call returned,
   * which a slow stream has behind it. Meanwhile the body is paused: packets that wait in the connection cost nothing,
   * each that is read wakes the process. An end that was noticed, an error and a picture do not wait. Default 0.
   */
  next(gatherMs?: number): Promise<Uint8Array | undefined>;
  /** Stops reading. The rest of the body is discarded for up to `ms`, so that the connection can be reused. */
  leave(ms: number): void;
  /** Stops reading and closes the connection, so that the server notices at once. */
  cancel(): void;
}

/** Backpressure starts at this many unread bytes. */
const maxQueuedBytes = 1024 * 1024;
/** So many bytes at once are not words, but a picture. */
const pictureBytes = 16 * 1024;
/** So long after them nothing is gathered: the picture would arrive later. */
const pictureMs = 250;

/**
 * A reader that loses no data: the async iterator of a stream discards its buffer when the connection is lost, and
 * with it the last text before an interruption.
 */
export function createChunkReader(body: Readable): ChunkReader {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let ending: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;
  /** When the last packet was returned. */
  let returnedAt = Number.NEGATIVE_INFINITY;
  /** When so many bytes were returned at once that they are a picture's. */
  let pictureAt = Number.NEGATIVE_INFINITY;

  const signal = () => {
    wake?.();
    wake = undefined;
  };
  const woken = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const gather = async (ms: number) => {
    body.pause();
    const timer = setTimeout(signal, ms);
    await woken();
    clearTimeout(timer);
    body.resume();
    // What waits in the connection is read in the next poll phase.
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  };
  const onData = (chunk: Uint8Array) => {
    queue.push(chunk);
    queuedBytes += chunk.length;
    if (queuedBytes > maxQueuedBytes) body.pause();
    signal();
  };
  const endWith = (how: { readonly error?: unknown }) => {
    ending ??= how;
    // What a paused body still holds when it fails.
    for (let chunk = readRest(); chunk !== null; chunk = readRest()) queue.push(chunk);
    signal();
  };
  const readRest = () => body.read() as Uint8Array | null;
  body.on("data", onData);
  body.on("end", () => endWith({}));
  body.on("error", (error) => endWith({ error }));
  body.on("close", () => {
    // Nearly always after `end`, so the costly error is created only when it is needed.
    if (ending === undefined) endWith({ error: new Error("the body was closed") });
  });

  const stop = () => {
    body.off("data", onData);
    queue = [];
  };

  return {
    async next(gatherMs = 0) {
      if (gatherMs > 0 && ending === undefined && queuedBytes < pictureBytes) {
        const now = performance.now();
        const leftMs = returnedAt + gatherMs - now;
        if (leftMs > 0 && now > pictureAt + pictureMs) await gather(leftMs);
      }
      if (queue.length === 0 && ending === undefined) await woken();
      const chunk = queue.length > 1 ? Buffer.concat(queue) : queue[0];
      if (chunk !== undefined) {
        queue = [];
        queuedBytes = 0;
        returnedAt = performance.now();
        if (chunk.length >= pictureBytes) pictureAt = returnedAt;
        if (body.isPaused()) body.resume();
        return chunk;
      }
      if (ending !== undefined && "error" in ending) throw ending.error;
      return undefined;
    },
    leave(ms) {
      stop();
      if (ending !== undefined) return;
      const timer = setTimeout(() => body.destroy(), ms);
      timer.unref();
      body.once("close", () => clearTimeout(timer));
      body.resume();
    },
    cancel() {
      stop();
      if (ending === undefined) body.destroy();
    },
  };
}
