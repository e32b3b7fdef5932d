import type { Clock } from "../../src/core/clock.ts";
import { toWaits } from "./clock-waits.ts";

/** A clock that stands still until a test advances it. */
export interface ManualClock extends Clock {
  /**
   * Lets `ms` milliseconds pass. Fires what becomes due in order, each timer at its own time. Before the next
   * timer it lets the code that the last one wakes run (promises and a few rounds of the event loop).
   */
  advance(ms: number): Promise<void>;
  /** Advances to the next timer, or does nothing without one. Resolves to whether there was one. */
  advanceToNext(): Promise<boolean>;
  /** Returns how many timers wait. */
  waiting(): number;
}

interface Timer {
  readonly callback: () => void;
  readonly everyMs: number | undefined;
  dueAt: number;
}

/** Creates a {@link ManualClock} that stands first at `startAt` (Unix ms). */
export function createManualClock(startAt = Date.UTC(2026, 0, 5, 12)): ManualClock {
  let elapsedMs = 0;
  const timers = new Set<Timer>();

  function add(ms: number, callback: () => void, everyMs?: number): () => void {
    const timer: Timer = { callback, everyMs, dueAt: elapsedMs + Math.max(0, ms) };
    timers.add(timer);
    return () => void timers.delete(timer);
  }

  function next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers) if (first === undefined || timer.dueAt < first.dueAt) first = timer;
    return first;
  }

  async function fireUntil(endMs: number): Promise<void> {
    await settle();
    for (let timer = next(); timer !== undefined && timer.dueAt <= endMs; timer = next()) {
      elapsedMs = Math.max(elapsedMs, timer.dueAt);
      if (timer.everyMs === undefined) timers.delete(timer);
      else timer.dueAt += Math.max(1, timer.everyMs);
      timer.callback();
      await settle();
    }
    elapsedMs = endMs;
  }

  const after: Clock["after"] = (ms, callback) => add(ms, callback);

  return {
    now: () => startAt + Math.round(elapsedMs),
    monotonic: () => elapsedMs,
    after,
    ...toWaits(after),
    every: (ms, callback) => add(ms, callback, ms),
    advance: (ms) => fireUntil(elapsedMs + ms),
    async advanceToNext() {
      await settle();
      const timer = next();
      if (timer === undefined) return false;
      await fireUntil(Math.max(elapsedMs, timer.dueAt));
      return true;
    },
    waiting: () => timers.size,
  };
}

/** Lets promises and immediates run. */
async function settle(): Promise<void> {
  for (let round = 0; round < 5; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}
