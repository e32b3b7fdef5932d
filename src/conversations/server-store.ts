import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";

/** A timer that runs later than this means that the process was suspended, or busy all the time. */
const maxLateMs = 250;
/** How long a response is waited for after that. */
const afterSuspensionMs = 1000;

/** How long a server's responses are waited for. */
interface ResponseDeadline {
  readonly deadlineMs: number;
  readonly clock: Clock;
  /** Called when a response did not come in time. */
  readonly onTimeout?: () => void;
}

/**
 * Runs requests to a server within a deadline: one that hangs is an outage like one that is down. Rejects with an
 * Error; the outcome of what was sent is then unknown.
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
      // A process that was suspended: its timers run before it reads the response that waits in its socket.
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

/** Notices that a server lost its data: restarted without persistence, emptied, or another server took its place. */
export interface DataLossWatch {
  /**
   * Compares the server's mark with the one that this process knows, and restores what the process needs when it
   * differs. Also fails when the server refuses writes.
   * @throws ParleyError `store-unavailable`
   */
  check(): Promise<void>;
  /** How often data was lost since the start, and when it was last noticed, in Unix ms. */
  readonly losses: { readonly count: number; readonly lastAt: number | undefined };
}

/** What the watch works with. */
interface DataLossWatchOptions {
  /** A random id that the server keeps, written if it has none. Always a new one, so that other instances notice too. */
  readonly readMark: () => Promise<string>;
  /** Says in the log that the mark has changed; false when that need not mean a loss. */
  readonly report: (known: string, found: string) => boolean;
  /** Writes what the emptied server must have again. Repeated at the next check when it fails. */
  readonly restore: () => Promise<void>;
  readonly clock: Clock;
}

/**
 * Reads the server's mark.
 * @see {@link DataLossWatch}
 */
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

/** How operators are told of losses; empty without any. */
export function describeLosses({ lastAt }: DataLossWatch["losses"], server: string): readonly string[] {
  return lastAt === undefined
    ? []
    : [`${server} lost its data, noticed at ${new Date(lastAt).toISOString()}: see the log`];
}

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
