import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";

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

/** Notices that a server lost its data, because it restarted without persistence, was emptied or replaced. */
export interface DataLossWatch {
  /**
   * Compares the server's mark with the known one, and restores what the process needs if it differs. It also
   * fails if the server refuses writes.
   * @throws ParleyError `store-unavailable`
   */
  check(): Promise<void>;
  /** How often data was lost since the start, and when that was last noticed, in Unix ms. */
  readonly losses: { readonly count: number; readonly lastAt: number | undefined };
}

/** The options of the watch. */
interface DataLossWatchOptions {
  /** Returns a random id on the server. A missing one gets replaced, so that all instances notice it. */
  readonly readMark: () => Promise<string>;
  /** Logs that the mark has changed. It returns false if that need not mean a loss. */
  readonly report: (known: string, found: string) => boolean;
  /** Writes what an emptied server must have again. If it fails, the next check repeats it. */
  readonly restore: () => Promise<void>;
  readonly clock: Clock;
}

/** Reads the server's mark and creates the {@link DataLossWatch}. */
export async function watchDataLoss({
  readMark,
  report,
  restore,
  clock,
}: DataLossWatchOptions): Promise<DataLossWatch> {
  const losses: { count: number; lastAt: number | undefined } = { count: 0, lastAt: undefined };
  let mustRestore = false;
  let known = await readMark();

  const compare = async () => {
    const mark = await readMark();
    if (mark !== known) {
      mustRestore = true;
      if (report(known, mark)) {
        losses.count++;
        losses.lastAt = clock.now();
      }
      known = mark;
    }
    if (!mustRestore) return;
    await restore();
    mustRestore = false;
  };

  let running: Promise<void> | undefined;
  return {
    losses,
    check: () =>
      (running ??= compare().finally(() => {
        running = undefined;
      })),
  };
}

/** Describes losses to operators, or is empty without any. */
export function describeLosses({ lastAt }: DataLossWatch["losses"], server: string): readonly string[] {
  return lastAt === undefined
    ? []
    : [`${server} lost its data, noticed at ${new Date(lastAt).toISOString()}: see the log`];
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
  /** Gets each failure. `isFirst` marks the first one since the last success. */
  onFailure(error: unknown, what: "request" | "look" | "rewrite", isFirst: boolean): void;
}

/** A rewrite reads much data, so the next one waits as long as it took, within these limits. */
const restMs = { min: 100, max: 60_000 } as const;

/** Creates a {@link BackgroundScrub}. */
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
