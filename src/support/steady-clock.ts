/** How long a step of the clock must last until it counts, in milliseconds. */
const confirmAfterMs = 60 * 60_000;
/** Smaller changes are corrections of a clock that runs too fast or too slow: they count at once. */
const toleranceMs = 1000;

/**
 * Wall time in Unix milliseconds, for a machine whose clock may step. A step counts after an hour: until then nobody
 * knows whether the old time or the new one is wrong. For durations and deadlines use `performance.now`.
 */
export interface SteadyClock {
  /** Wall time without the steps of the last hour. Does not go back, except by a step that counts. */
  now(): number;
  /** The earlier of `now` and the system's clock: what expires by it does not expire early. */
  earliest(): number;
  /** The later one: for stored expiry times and for the beginning of what may become too old. */
  latest(): number;
}

/** Sources of time, in milliseconds. Defaults: `Date.now` and `performance.now`. */
export interface SteadyClockOptions {
  readonly wall?: () => number;
  readonly monotonic?: () => number;
}

/** A clock of its own; {@link steadyClock} is the process's. */
export function createSteadyClock({
  wall = () => Date.now(),
  monotonic = () => performance.now(),
}: SteadyClockOptions = {}): SteadyClock {
  /** Wall time at which the monotonic clock was 0. */
  let originMs = wall() - monotonic();
  /** A step that does not count yet, and when it was seen. */
  let step: { originMs: number; readonly seenAt: number } | undefined;

  function now(): number {
    const at = monotonic();
    const foundMs = wall() - at;
    if (Math.abs(foundMs - originMs) <= toleranceMs) {
      originMs = foundMs;
      step = undefined;
    } else if (step === undefined || Math.abs(foundMs - step.originMs) > toleranceMs) {
      step = { originMs: foundMs, seenAt: at };
    } else if (at - step.seenAt >= confirmAfterMs) {
      originMs = foundMs;
      step = undefined;
    } else {
      step.originMs = foundMs;
    }
    return Math.round(originMs + at);
  }

  return {
    now,
    earliest: () => Math.min(now(), wall()),
    latest: () => Math.max(now(), wall()),
  };
}

/** The wall time of this process. @see {@link SteadyClock} */
export const steadyClock = createSteadyClock();
