import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { Log } from "../core/telemetry.ts";
import type { BackendNotes } from "./backend.ts";

/** A timer that is later than this shows that the process was suspended or busy all the time. */
const maxLateMs = 250;
/** How long a response is awaited after that. */
const afterSuspensionMs = 1000;

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
    const dueAt = clock.monotonic() + deadlineMs;
    const timeOut = (): void => {
      reject(new Error(`no response within ${deadlineMs} ms`));
      onTimeout();
    };
    cancel = clock.after(deadlineMs, () => {
      // In a process that was suspended, timers run before it reads the response that waits in its socket.
      const wasSuspended = clock.monotonic() - dueAt > maxLateMs;
      if (wasSuspended) cancel = clock.after(Math.min(deadlineMs, afterSuspensionMs), timeOut);
      else timeOut();
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
  /** The server's product, for operators. */
  readonly product: string;
  /** Returns a random id on the server. A missing one gets replaced, so that all instances notice it. */
  readonly readMark: () => Promise<string>;
  /** Logs that the mark has changed. It returns false if that need not mean a loss. */
  readonly report: (known: string, found: string) => boolean;
  /** Makes what an emptied server must have before anything is written to it. */
  readonly prepare: () => Promise<void>;
  readonly scrubber: BackgroundScrub;
  /** Calls the listener whenever the server responds again. */
  readonly onReady: (listener: () => void) => void;
  readonly log: Log;
  readonly clock: Clock;
}

/**
 * Watches a server from its first mark on: every 15 s, after a reconnect and when a lease was lost. It
 * notices lost data, because the server restarted without persistence, was emptied or replaced, and restores
 * what the process needs. It also resumes the scrubber's work.
 */
export async function watchServer(options: WatchOptions) {
  const { product, readMark, report, prepare, scrubber, onReady, log, clock } = options;
  let losses = 0;
  let lostAt: number | undefined;
  let mustRestore = false;
  let isRestoring = false;
  let onDataLost = async () => {};
  let known = await readMark();

  const restore = async () => {
    isRestoring = true;
    try {
      await prepare();
      await onDataLost();
      mustRestore = false;
    } finally {
      isRestoring = false;
    }
  };
  const compare = async () => {
    const mark = await readMark();
    if (mark !== known) {
      mustRestore = true;
      if (report(known, mark)) {
        losses++;
        lostAt = clock.now();
      }
      known = mark;
    }
    if (mustRestore) await restore();
  };
  let running: Promise<void> | undefined;
  const check = () =>
    (running ??= compare().finally(() => {
      running = undefined;
    }));
  const look = async () => {
    await check().catch((error: unknown) => {
      log.debug({ error }, `whether ${product} has its data could not be checked; checked again soon`);
    });
  };

  // Neither is awaited, because a start must not depend on what an earlier process left undone.
  void scrubber.resume();
  onReady(() => void look().then(() => scrubber.resume()));
  const stopLooking = clock.every(checkIntervalMs, () => void look());
  return {
    /**
     * Compares the server's mark with the known one, and restores what the process needs if it differs. It
     * also fails if the server refuses writes.
     * @throws ParleyError `store-unavailable`
     */
    check,
    /** Does the same and never rejects. */
    look,
    isRestoring: () => isRestoring,
    notes: (): BackendNotes => ({
      problems: [],
      warnings:
        lostAt === undefined
          ? []
          : [`${product} lost its data, noticed at ${new Date(lostAt).toISOString()}: see the log`],
      dataLosses: losses,
    }),
    onDataLost: (listener: () => Promise<void>): void => {
      onDataLost = listener;
    },
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
