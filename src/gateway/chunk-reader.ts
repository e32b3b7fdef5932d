import type { Readable } from "node:stream";

/** Reads a body packet by packet. */
export interface ChunkReader {
  /** The next packet, `undefined` at a clean end. Throws what broke the body, after everything that came before it. */
  next(): Promise<Uint8Array | undefined>;
  /** Reads no more: what still comes within `ms` is thrown away, so that the connection can be used again. */
  leave(ms: number): void;
  /** Reads no more and gives the connection up, so that the server notices at once. */
  cancel(): void;
}

/** A reader that is slower than this many bytes makes the server wait. */
const maxQueuedBytes = 1024 * 1024;

/**
 * A reader that loses nothing: the async iterator of a stream throws away what it has buffered as soon as the
 * connection breaks, and with it the last words before an interruption.
 */
export function createChunkReader(body: Readable): ChunkReader {
  let queue: Uint8Array[] = [];
  let queuedBytes = 0;
  let ending: { readonly error?: unknown } | undefined;
  let wake: (() => void) | undefined;

  const signal = () => {
    wake?.();
    wake = undefined;
  };
  const onData = (chunk: Uint8Array) => {
    queue.push(chunk);
    queuedBytes += chunk.length;
    if (queuedBytes > maxQueuedBytes) body.pause();
    signal();
  };
  const endWith = (how: { readonly error?: unknown }) => {
    ending ??= how;
    signal();
  };
  body.on("data", onData);
  body.on("end", () => endWith({}));
  body.on("error", (error) => endWith({ error }));
  body.on("close", () => {
    // Nearly always after `end`; an error made in vain costs more than all the rest of this file.
    if (ending === undefined) endWith({ error: new Error("the body was closed") });
  });

  const stop = () => {
    body.off("data", onData);
    queue = [];
  };

  return {
    async next() {
      if (queue.length === 0 && ending === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const chunk = queue.length > 1 ? Buffer.concat(queue) : queue[0];
      if (chunk !== undefined) {
        queue = [];
        queuedBytes = 0;
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
