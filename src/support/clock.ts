import type { Clock } from "../core/clock.ts";

/**
 * Resolves after `ms` milliseconds.
 * @throws the reason of `signal` when it aborts first
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    if (signal?.aborted === true) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

/**
 * Like {@link sleep}, but also resolves when `signal` aborts. Never rejects.
 * @param clock default: the time of this process
 */
export async function sleepUnlessAborted(
  ms: number,
  signal: AbortSignal,
  clock: Pick<Clock, "sleep"> = { sleep },
): Promise<void> {
  await Promise.allSettled([clock.sleep(ms, signal)]);
}

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

/** Options of {@link inTime}. */
interface InTimeOptions {
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "after"> | undefined;
  /** Whether the wait keeps the process from ending. Default true. */
  readonly keepsAlive?: boolean | undefined;
}

/**
 * What `promise` resolves to, or `undefined` when that takes more than `ms` milliseconds. Its work goes on then, and
 * nobody hears of its failure.
 * @throws what `promise` rejects with in time
 */
export async function inTime<T>(
  promise: Promise<T>,
  ms: number,
  { clock = systemClock, keepsAlive = true }: InTimeOptions = {},
): Promise<T | undefined> {
  const { promise: timeUp, resolve } = Promise.withResolvers<undefined>();
  const cancel = clock.after(ms, () => resolve(undefined), { keepsAlive });
  try {
    return await Promise.race([promise, timeUp]);
  } finally {
    cancel();
  }
}

/**
 * What `promise` resolves to. Its work goes on when the signal aborts, and nobody hears of its failure.
 * @throws what `promise` rejects with, or the reason of `signal` when it aborts first
 */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([aborted, promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** How long a step of the clock must last until it counts, in milliseconds. */
const confirmAfterMs = 60 * 60_000;
/** Smaller changes are corrections of a clock that runs too fast or too slow: they count at once. */
const toleranceMs = 1000;

/**
 * Wall time in Unix milliseconds, for a machine whose clock may step. A step counts after an hour: until then nobody
 * knows whether the old time or the new one is wrong. For durations and deadlines use `performance.now`.
 */
interface SteadyClock {
  /** Wall time without the steps of the last hour. Does not go back, except by a step that counts. */
  now(): number;
  /** The earlier of `now` and the system's clock: what expires by it does not expire early. */
  earliest(): number;
  /** The later one: for stored expiry times and for the beginning of what may become too old. */
  latest(): number;
}

/** Sources of time, in milliseconds. Defaults: `Date.now` and `performance.now`. */
interface SteadyClockOptions {
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

const dayMs = 24 * 60 * 60 * 1000;

/** The day of a time in Unix ms as `YYYY-MM-DD`, in UTC. */
export function toUtcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** When a day (`YYYY-MM-DD`, UTC) ends, in Unix ms. */
export function endOfUtcDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) + dayMs;
}

/** The day before or after by so many days. */
export function addUtcDays(day: string, days: number): string {
  return toUtcDay(Date.parse(`${day}T00:00:00Z`) + days * dayMs);
}

/** Options of an `LRUCache` with a `ttl`, whose entries expire by the clock. */
export function expiringBy(clock: Clock): {
  readonly perf: { readonly now: () => number };
  readonly ttlResolution: 0;
} {
  // To the cache, what was added at 0 never expires; and with another resolution it sets timers of its own.
  return { perf: { now: () => clock.monotonic() + 1 }, ttlResolution: 0 };
}
