import type { Clock } from "../../core/clock.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";

/** Between two channels: requests for live messages have room. */
const pauseMs = 100;

/** Work on many channels, one after another, about eight a second: live messages come first. */
export interface PacedSearch {
  /** Adds work behind what waits. `isWanted`: asked before it begins. Contract: the work must not throw. */
  add(work: () => Promise<void>, isWanted: () => boolean): void;
}

/** @see {@link PacedSearch} */
export function createPacedSearch(signal: AbortSignal, clock: Clock): PacedSearch {
  const waiting: { readonly work: () => Promise<void>; readonly isWanted: () => boolean }[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (!next.isWanted()) continue;
      await next.work();
      await sleepUnlessAborted(pauseMs, signal, clock);
    }
    isRunning = false;
  }

  return {
    add(work, isWanted) {
      waiting.push({ work, isWanted });
      if (!isRunning) void run();
    },
  };
}
