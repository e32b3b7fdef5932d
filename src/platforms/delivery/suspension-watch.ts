import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../support/clock.ts";

/** Time between checks. */
const checkMs = 250;
/**
 * A longer gap between checks means that the process was stopped or the machine asleep. Leases are renewed every fifth
 * of their time, and the shortest last a second.
 */
const maxGapMs = 1000;

/** Detects that this process was suspended. */
export interface SuspensionWatch {
  /** True once after each suspension, even if no timer has run since. */
  wasSuspended(): boolean;
  stop(): void;
}

/** Checks until it is stopped; does not keep the process alive. */
export function createSuspensionWatch(clock: Clock = systemClock): SuspensionWatch {
  let lastCheck = clock.monotonic();
  let wasSuspended = false;
  const check = (): void => {
    const now = clock.monotonic();
    if (now - lastCheck >= maxGapMs) wasSuspended = true;
    lastCheck = now;
  };
  const end = clock.every(checkMs, check);
  return {
    wasSuspended() {
      check();
      const result = wasSuspended;
      wasSuspended = false;
      return result;
    },
    stop: end,
  };
}
