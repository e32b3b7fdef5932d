import type { Clock } from "../../src/core/clock.ts";
import { systemClock } from "../../src/support/clock.ts";

/**
 * Creates a clock on which waits are `factor` times shorter. It is for stories between real sockets, whose
 * other side does not use it. Wall time is that of this process, so that stored times and days are right.
 */
export function createScaledClock(factor: number): Clock {
  const startedAt = performance.now();
  return {
    now: () => systemClock.now(),
    monotonic: () => startedAt + (performance.now() - startedAt) * factor,
    sleep: (ms, signal) => systemClock.sleep(ms / factor, signal),
    after: (ms, callback, options) => systemClock.after(ms / factor, callback, options),
    every: (ms, callback) => systemClock.every(ms / factor, callback),
    timeout: (ms) => systemClock.timeout(ms / factor),
  };
}
