import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";

/** Removes deleted values from a server's files, by having the server rewrite them in the background. */
export interface BackgroundScrub {
  /**
   * Asks for a rewrite that begins after this call. Resolves when the request is stored on the server, so that it
   * survives this process; several requests share a rewrite. Never rejects: what failed is logged and tried again.
   */
  request(): Promise<void>;
  /** Takes up what an earlier process, or a failed attempt, left undone. Never rejects. */
  resume(): Promise<void>;
  /** Waits no longer for the server; what is unfinished stays stored. */
  close(): void;
}

/** A server that keeps the request and can rewrite its files. Failures are rejections. */
export interface ScrubServer {
  /** Stores the id of the latest request. */
  store(id: string): Promise<void>;
  /** The stored id; `undefined`: nothing is requested. */
  stored(): Promise<string | undefined>;
  /** Removes the request if it still has this id. */
  settle(id: string): Promise<void>;
  /** One rewrite that begins now or later and succeeds. */
  rewrite(signal: AbortSignal): Promise<void>;
  /** Receives what failed. `isFirst`: since it last succeeded. */
  onFailure(error: unknown, what: "request" | "look" | "rewrite", isFirst: boolean): void;
}

/** A rewrite reads much data: after one, the next waits as long as it took, within these bounds. */
const restMs = { min: 100, max: 60_000 } as const;

/** @see {@link BackgroundScrub} */
export function createBackgroundScrub(server: ScrubServer, clock: Clock): BackgroundScrub {
  const closing = new AbortController();
  let isRunning = false;
  let isRequested = false;
  let isFailing = false;

  const run = async () => {
    while (isRequested) {
      isRequested = false;
      const request = await server.stored();
      const beganAt = clock.monotonic();
      await server.rewrite(closing.signal);
      if (request !== undefined) await server.settle(request);
      const tookMs = clock.monotonic() - beganAt;
      if (isRequested) await clock.sleep(Math.min(restMs.max, Math.max(restMs.min, tookMs)), closing.signal);
    }
  };

  const start = () => {
    isRequested = true;
    if (isRunning || closing.signal.aborted) return;
    isRunning = true;
    run()
      .then(() => {
        isFailing = false;
      })
      .catch((error: unknown) => {
        if (closing.signal.aborted) return;
        server.onFailure(error, "rewrite", !isFailing);
        isFailing = true;
      })
      .finally(() => {
        isRunning = false;
      });
  };

  return {
    async request() {
      try {
        await server.store(randomUUID());
      } catch (error) {
        server.onFailure(error, "request", true);
      }
      start();
    },
    async resume() {
      try {
        if ((await server.stored()) !== undefined) start();
      } catch (error) {
        server.onFailure(error, "look", true);
      }
    },
    close: () => closing.abort(),
  };
}
