import type { IncomingMessage } from "node:http";
import { createFairSemaphore, type Release } from "../support/fair-semaphore.ts";

/** Bodies up to this size are not counted, and wait for nothing. */
const smallBytes = 256 * 1024;

/** Bounds the JSON bodies that are in memory at once; requests past the bound wait, in order. */
export interface BodyMemory {
  /**
   * Waits until the request's body may be read. Without a Content-Length it counts as the largest one.
   * @throws the reason of `signal` when the client leaves first
   */
  admit(request: IncomingMessage, maxBodyBytes: number, signal: AbortSignal): Promise<Release>;
}

/** @param maxBytes of all bodies; a single larger one is admitted alone */
export function createBodyMemory(maxBytes: number): BodyMemory {
  const semaphore = createFairSemaphore({ max: maxBytes, maxPerKey: maxBytes });
  return {
    async admit(request, maxBodyBytes, signal) {
      const announced = Number(request.headers["content-length"] ?? maxBodyBytes);
      const bytes = Number.isFinite(announced) ? Math.min(announced, maxBodyBytes) : maxBodyBytes;
      return bytes <= smallBytes ? () => {} : await semaphore.acquire("", bytes, signal);
    },
  };
}
