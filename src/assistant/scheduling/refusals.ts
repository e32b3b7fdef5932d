import { LRUCache } from "lru-cache";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { toOpenTurns } from "./open-turns.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

/** Refusals that wait for the store. Past it the oldest is no longer waited for. */
const maxWaiting = 10_000;
const backoff = { baseMs: 250, maxMs: 5000 };

export interface RefusalOptions {
  readonly inbox: Pick<Inbox, "refuse" | "lookUp" | "isOpen">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Log;
}

/** What people were told is not taken. */
export interface Refusals extends Pick<Receiver, "refuse"> {
  /** Whether a refusal of this key waits for the store. */
  isWaiting(key: string): boolean;
  /** From now on each refusal is tried once. Those that wait reject with `stopping`. */
  close(): void;
}

/**
 * Keeps refusals in memory until the store has them. One that comes too late, because an accept whose outcome was
 * unknown had been written, starts the turn instead.
 */
export function createRefusals({ inbox, scheduler, now, log }: RefusalOptions): Refusals {
  const waiting = new LRUCache<string, Promise<"refused" | "accepted">>({ max: maxWaiting });

  const closing = new AbortController();

  async function settle(key: string): Promise<"refused" | "accepted"> {
    const writing = retry(() => inbox.refuse(key), {
      signal: closing.signal.aborted ? undefined : closing.signal,
      delayMs: (error, attempt) =>
        isParleyError(error, "store-unavailable") && !closing.signal.aborted
          ? backoffMs(attempt, backoff)
          : undefined,
    });
    const outcome = await writing.finally(() => waiting.delete(key));
    if (outcome === "accepted") await startUnlessRunning(key);
    return outcome;
  }

  async function startUnlessRunning(key: string): Promise<void> {
    if (scheduler.inFlight.has(key) || scheduler.isStopping()) return;
    try {
      if (!(await inbox.isOpen(key))) return;
      const [turn] = toOpenTurns(await inbox.lookUp([key]), now());
      if (turn !== undefined && !scheduler.inFlight.has(key))
        scheduler.schedule(turn, { unlessLeased: true });
    } catch (error) {
      log.warn({ turn: key, err: error }, "accepted event not started; recovery starts it");
    }
  }

  return {
    isWaiting: (key) => waiting.has(key),
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    refuse(key) {
      const known = waiting.get(key);
      if (known !== undefined) return known;
      const settled = settle(key);
      waiting.set(key, settled);
      return settled;
    },
  };
}
