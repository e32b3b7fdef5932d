import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { ConversationQueue } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { ParleyError } from "../core/errors.ts";
import { createKeyedQueue } from "../support/queues.ts";
import type { Backend } from "./backend.ts";

/**
 * The average time between attempts to take another holder's lease, in milliseconds. The holder does what was
 * accepted meanwhile, so that waiting for it costs nobody a second.
 */
const retryMs = 1000;

const tooLate = "it could not be renewed in time";

/** The options of a leased queue. */
interface LeasedQueueOptions {
  /** A lease may be the service's. Its failures are ParleyErrors. */
  readonly lease: Backend["lease"];
  readonly log: Log;
  readonly clock: Clock;
  /** How many milliseconds a lease lasts without renewal. Default 15 s. */
  readonly ttlMs?: number | undefined;
}

/**
 * Runs one turn of a conversation at a time across processes. The lease is an optimization, not a guarantee:
 * a paused process may still write after its lease has expired, and the slots of the log resolve that
 * conflict. If the lease service is unreachable, `run` throws `store-unavailable` before the work begins.
 */
export function createLeasedQueue(options: LeasedQueueOptions): ConversationQueue {
  const { lease: change, log, clock, ttlMs = 15_000 } = options;
  const local = createKeyedQueue();
  // It is that of the process, so that a response that was lost does not lock the process out.
  const holder = randomUUID();
  const closing = new AbortController();

  /** Renews a lease every fifth of its time until it is released or lost, which aborts its signal. */
  const keepRenewed = (name: string, takenAt: number) => {
    const lost = new AbortController();
    let validUntil = takenAt + ttlMs;
    let isRenewing = false;
    const lose = (reason: string) => {
      stop();
      if (lost.signal.aborted) return;
      log.warn({ reason }, "lease lost");
      lost.abort(new ParleyError("store-unavailable", `the lease of the conversation was lost: ${reason}`));
    };
    const renew = async () => {
      const requestedAt = clock.monotonic();
      try {
        const isHeld = await change(name, holder, ttlMs);
        // A lease that had ended would have been taken anew, and another process may have had it meanwhile.
        if (isHeld && clock.monotonic() < validUntil) validUntil = requestedAt + ttlMs;
        else lose(isHeld ? tooLate : "another process has it");
      } catch (error) {
        // The renewal is retried until the lease expires.
        log.debug({ error }, "lease renewal failed");
      }
    };
    const stop = clock.every(ttlMs / 5, () => {
      // This also shows a process that it was paused for a long time.
      if (clock.monotonic() >= validUntil) return lose(tooLate);
      if (isRenewing) return;
      isRenewing = true;
      void renew().finally(() => {
        isRenewing = false;
      });
    });
    return {
      signal: lost.signal,
      isFresh: () => clock.monotonic() < validUntil,
      async release() {
        stop();
        if (lost.signal.aborted) return;
        await change(name, holder, "release").catch((error: unknown) => {
          log.debug({ error }, "lease release failed; it expires by itself");
        });
      },
    };
  };

  const tryTake = async (name: string) => {
    closing.signal.throwIfAborted();
    // The time is taken before the request, so that the lease never expires on the server first.
    const takenAt = clock.monotonic();
    if (!(await change(name, holder, ttlMs))) return undefined;
    return keepRenewed(name, takenAt);
  };

  const runWith = async <T>(
    lease: ReturnType<typeof keepRenewed>,
    work: (lost: AbortSignal, isFresh: () => boolean) => Promise<T>,
  ): Promise<T> => {
    try {
      return await work(lease.signal, lease.isFresh);
    } finally {
      await lease.release();
    }
  };

  return {
    isShared: true,
    run: (conversationId, work) =>
      local.run(conversationId, async () => {
        for (;;) {
          const lease = await tryTake(conversationId);
          if (lease !== undefined) return runWith(lease, work);
          await clock.sleep(retryMs * (0.5 + Math.random()), closing.signal);
        }
      }),
    runUnlessTaken: (conversationId, work) =>
      local.run(conversationId, async () => {
        const lease = await tryTake(conversationId);
        if (lease === undefined) return false;
        await runWith(lease, work);
        return true;
      }),
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    idle: () => local.idle(),
  };
}

/** The queue of a store with one process, where work never loses its conversation. */
export function createLocalQueue(): ConversationQueue {
  const queue = createKeyedQueue();
  const closing = new AbortController();
  const run = <T>(
    conversationId: string,
    work: (lost: AbortSignal, isFresh: () => boolean) => Promise<T>,
  ): Promise<T> =>
    queue.run(conversationId, async () => {
      closing.signal.throwIfAborted();
      return work(new AbortController().signal, () => true);
    });
  return {
    isShared: false,
    run,
    async runUnlessTaken(conversationId, work) {
      await run(conversationId, work);
      return true;
    },
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    idle: () => queue.idle(),
  };
}
