import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ConversationQueue } from "../core/storage.ts";
import type { Log } from "../core/telemetry.ts";
import { ParleyError } from "../core/errors.ts";
import { createKeyedQueue } from "../support/keyed-queue.ts";

/** Names that one holder at a time has, for a time. Failures are ParleyErrors. */
export interface Leases {
  take(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** False: it ran out, or somebody else has it. */
  renew(name: string, holder: string, ttlMs: number): Promise<boolean>;
  /** Does nothing where somebody else has it. */
  release(name: string, holder: string): Promise<void>;
}

export interface LeasedQueueOptions {
  readonly leases: Leases;
  readonly log: Log;
  /** After this long without renewal others take over. Default 15 s. */
  readonly ttlMs?: number | undefined;
  /** How often a taken conversation is asked for. Default 100 ms. */
  readonly retryMs?: number | undefined;
}

/**
 * One turn at a time in a conversation across processes. A lease is politeness, not safety: a paused process may
 * still write after it has lost its lease, and the slots of the log sort that out. When Redis cannot be reached,
 * `run` throws `store-unavailable` before the work begins.
 */
export function createLeasedQueue(options: LeasedQueueOptions): ConversationQueue {
  const { leases, log, ttlMs = 15_000, retryMs = 100 } = options;
  const local = createKeyedQueue();

  const closing = new AbortController();

  const takeOnce = async (name: string): Promise<HeldLease | undefined> => {
    closing.signal.throwIfAborted();
    const holder = randomUUID();
    // Counted from before the request: the server starts counting later, so it never runs out there first.
    const takenAt = performance.now();
    return (await leases.take(name, holder, ttlMs)) ? hold(name, holder, takenAt) : undefined;
  };

  const take = async (name: string): Promise<HeldLease> => {
    for (;;) {
      const lease = await takeOnce(name);
      if (lease !== undefined) return lease;
      await sleep(retryMs * (0.5 + Math.random()));
    }
  };

  const hold = (name: string, holder: string, takenAt: number): HeldLease => {
    const lost = new AbortController();
    let validUntil = takenAt + ttlMs;
    let isRenewing = false;
    const lose = (why: string) => {
      clearInterval(timer);
      if (lost.signal.aborted) return;
      log.warn({ why }, "lost the lease of a conversation");
      lost.abort(new ParleyError("store-unavailable", `the lease of the conversation was lost: ${why}`));
    };
    const renew = async () => {
      const askedAt = performance.now();
      try {
        if (await leases.renew(name, holder, ttlMs)) validUntil = askedAt + ttlMs;
        else lose("another process may have it");
      } catch (error) {
        // Tried again until it has run out.
        log.debug({ error }, "could not renew the lease of a conversation");
      }
    };
    const timer = setInterval(() => {
      // Also what a process finds that was paused for long.
      if (performance.now() >= validUntil) return lose("it could not be renewed in time");
      if (isRenewing) return;
      isRenewing = true;
      void renew().finally(() => {
        isRenewing = false;
      });
    }, ttlMs / 5);
    return {
      signal: lost.signal,
      async release() {
        clearInterval(timer);
        if (lost.signal.aborted) return;
        await leases.release(name, holder).catch((error: unknown) => {
          log.debug({ error }, "could not give a lease back; it runs out by itself");
        });
      },
    };
  };

  return {
    isShared: true,
    async run(conversationId, work) {
      return local.run(conversationId, async () => {
        const lease = await take(conversationId);
        try {
          return await work(lease.signal);
        } finally {
          await lease.release();
        }
      });
    },
    async runUnlessTaken(conversationId, work) {
      return local.run(conversationId, async () => {
        const lease = await takeOnce(conversationId);
        if (lease === undefined) return false;
        try {
          await work(lease.signal);
        } finally {
          await lease.release();
        }
        return true;
      });
    },
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    async idle() {
      await local.idle();
    },
  };
}

interface HeldLease {
  readonly signal: AbortSignal;
  release(): Promise<void>;
}
