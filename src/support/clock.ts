import type { Clock } from "../core/clock.ts";
import { sleep } from "./sleep.ts";
import { steadyClock } from "./steady-clock.ts";

/** The time of this process. */
export const systemClock: Clock = {
  now: () => steadyClock.now(),
  monotonic: () => performance.now(),
  sleep,
  after(ms, callback, { keepsAlive = true } = {}) {
    const timer = setTimeout(callback, ms);
    if (!keepsAlive) timer.unref();
    return () => clearTimeout(timer);
  },
  every(ms, callback) {
    const timer = setInterval(callback, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
  timeout: (ms) => AbortSignal.timeout(ms),
};
