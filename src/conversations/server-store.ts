import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import { ParleyError } from "../core/errors.ts";
import type { Log } from "../core/telemetry.ts";

/** How long a server's responses are awaited. */
interface ResponseDeadline {
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Called when a response did not arrive in time. */
  readonly onTimeout?: () => void;
}

/**
 * Runs requests to a server within a deadline, so that a server that hangs counts as an outage. It rejects
 * with an Error, after which the outcome of the requests is unknown.
 */
export async function withinDeadline<T>(
  work: () => Promise<T>,
  { deadlineMs, clock, onTimeout = () => {} }: ResponseDeadline,
): Promise<T> {
  let cancel = () => {};
  const deadline = new Promise<never>((_, reject) => {
    cancel = clock.after(deadlineMs, () => {
      reject(new Error(`no response within ${deadlineMs} ms`));
      onTimeout();
    });
  });
  try {
    return await Promise.race([work(), deadline]);
  } finally {
    cancel();
  }
}

/** How often an idle process checks whether a server still has its data. */
const checkIntervalMs = 15_000;

/** The options of the watch. */
interface WatchOptions {
  /** The server's product and address, for operators. */
  readonly store: string;
  /**
   * Returns the random id that is on the server, or `undefined` if it has none. It fails if the server
   * refuses writes.
   */
  readonly readMark: () => Promise<string | undefined>;
  readonly scrubber: BackgroundScrub;
  /** Calls the listener whenever the server responds again. */
  readonly onReady: (listener: () => void) => void;
  /** Called once when the server has lost its data. */
  readonly onDataLost: () => void;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * Watches a server from its first mark on: every 15 s, after a reconnect and when it is asked. A server
 * with another mark was emptied or replaced, or restarted without persistence, so what this process knows
 * is no longer true: the log says so, `check` fails from then on, and the process is to end. It also
 * resumes the scrubber's work.
 */
export async function watchServer(options: WatchOptions) {
  const { store, readMark, scrubber, onReady, onDataLost, log, clock } = options;
  const known = await readMark();
  let isLost = false;
  const check = async () => {
    if (!isLost && (await readMark()) === known) return;
    if (!isLost) {
      isLost = true;
      log.error(
        { store },
        "the store lost its data: it was emptied, replaced or restarted without persistence. This process ends, and its next start goes on with what is there. To restore a backup, stop Parley first",
      );
      onDataLost();
    }
    throw new ParleyError("store-unavailable", `${store} lost its data: this process ends`, {
      detail: { problem: "has lost its data", reason: "see the log" },
    });
  };
  const look = () =>
    void check().catch((error: unknown) => {
      if (!isLost) log.debug({ error, store }, "whether the store has its data could not be checked");
    });

  // Neither is awaited, because a start must not depend on what an earlier process left undone.
  void scrubber.resume();
  onReady(() => {
    look();
    void scrubber.resume();
  });
  const stopLooking = clock.every(checkIntervalMs, look);
  return {
    /** @throws ParleyError `store-unavailable` if the server does not take writes or has lost its data */
    check,
    close() {
      stopLooking();
      scrubber.close();
    },
  };
}

/** Removes deleted values from a server's files, which the server rewrites in the background. */
export interface BackgroundScrub {
  /**
   * Requests a rewrite that begins after this call. Resolves when the request is stored on the server, so
   * that it survives this process. Several requests share a rewrite. It never rejects, because failures are
   * logged and retried.
   */
  request(): Promise<void>;
  /** Resumes what an earlier process or a failed attempt left undone. It never rejects. */
  resume(): Promise<void>;
  /** Stops waiting for the server. Unfinished requests stay stored. */
  close(): void;
}

/** A server that keeps the request and can rewrite its files. It rejects on failures. */
export interface ScrubServer {
  /** Stores the id of the latest request. */
  store(id: string): Promise<void>;
  /** The stored id, or `undefined` if nothing is requested. */
  stored(): Promise<string | undefined>;
  /** Removes the request if it still has this id. */
  settle(id: string): Promise<void>;
  /** Runs a rewrite that begins now or later and succeeds. */
  rewrite(signal: AbortSignal): Promise<void>;
  /** Gets each failure. `isFirst` marks a rewrite's first one since the last success. */
  onFailure(error: unknown, isFirst: boolean): void;
}

/** Creates a {@link BackgroundScrub}. */
export function createBackgroundScrub(server: ScrubServer): BackgroundScrub {
  const closing = new AbortController();
  let isRunning = false;
  let isRequested = false;
  let isFailing = false;

  const run = async () => {
    while (isRequested) {
      isRequested = false;
      const request = await server.stored();
      await server.rewrite(closing.signal);
      if (request !== undefined) await server.settle(request);
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
        server.onFailure(error, !isFailing);
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
        server.onFailure(error, false);
      }
      start();
    },
    async resume() {
      try {
        if ((await server.stored()) !== undefined) start();
      } catch (error) {
        server.onFailure(error, false);
      }
    },
    close: () => closing.abort(),
  };
}
