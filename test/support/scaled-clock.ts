import { AsyncResource } from "node:async_hooks";
import type { Clock } from "../../src/core/clock.ts";
import { systemClock } from "../../src/support/clock.ts";
import { loopTime, onLoopTime } from "./loop-time.ts";
import { toWaits } from "./clock-waits.ts";

/**
 * Creates a clock on which waits are `factor` times shorter. It is for stories between real sockets, whose
 * other side does not use it. Its time is what this process has had ({@link loopTime}), so that no deadline
 * passes because other programs run. Wall time is that of this process, so that stored times and days are
 * right.
 */
export function createScaledClock(factor: number): Clock {
  const monotonic = (): number => loopTime() * factor;

  function add(ms: number, callback: () => void, everyMs?: number): () => void {
    let dueAt = monotonic() + ms;
    // As with the timers of Node, what is called belongs to the turn that has asked for it.
    const call = AsyncResource.bind(callback);
    const cancel = onLoopTime(() => {
      if (monotonic() < dueAt) return;
      if (everyMs === undefined) cancel();
      else dueAt += Math.max(1, everyMs);
      call();
    });
    return cancel;
  }

  const after: Clock["after"] = (ms, callback) => add(ms, callback);

  return {
    now: () => systemClock.now(),
    monotonic,
    after,
    ...toWaits(after),
    every: (ms, callback) => add(ms, callback, ms),
  };
}
