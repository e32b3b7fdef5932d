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
 * Works like {@link sleep} but also resolves when `signal` aborts. It never rejects.
 * @param clock default: the time of this process
 */
export async function sleepUnlessAborted(
  ms: number,
  signal: AbortSignal,
  clock: Pick<Clock, "sleep"> = { sleep },
): Promise<void> {
  await Promise.allSettled([clock.sleep(ms, signal)]);
}

/** The clock of this process. */
export const systemClock: Clock = {
  now: () => Date.now(),
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

interface InTimeOptions {
  /** Default: the time of this process. */
  readonly clock?: Pick<Clock, "after"> | undefined;
  /** Whether the wait keeps the process from ending. Default true. */
  readonly keepsAlive?: boolean | undefined;
}

/**
 * Resolves to the result of `promise`, or to `undefined` if that takes more than `ms` milliseconds. The work
 * then continues and its failure is ignored.
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
 * Resolves to the result of `promise`. When the signal aborts, the work continues and its failure is ignored.
 * @throws what `promise` rejects with, or the reason of `signal` if it aborts first
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

const dayMs = 24 * 60 * 60 * 1000;
/** The system's time when this process started. */
const startedAt = Date.now() - performance.now();

/**
 * The time by which stored entries expire, in Unix ms. It is `undefined` after the system's clock has
 * jumped by more than a day, since it may be wrong: then nothing expires until the next start.
 */
export function expiryTime(): number | undefined {
  const now = Date.now();
  return Math.abs(now - performance.now() - startedAt) > dayMs ? undefined : now;
}

/** The UTC day of a time in Unix ms as `YYYY-MM-DD`. */
export function toUtcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** The end of a UTC day (`YYYY-MM-DD`) in Unix ms. */
export function endOfUtcDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) + dayMs;
}

/** The UTC month of a time in Unix ms as `YYYY-MM`. */
export function toUtcMonth(time: number): string {
  return toUtcDay(time).slice(0, 7);
}

/** The end of a UTC month (`YYYY-MM`) in Unix ms. */
export function endOfUtcMonth(month: string): number {
  // Months are counted from 0 here, so that this number is the next month's.
  return Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)));
}

/** Moves a day by a number of days, which may be negative. */
export function addUtcDays(day: string, days: number): string {
  return toUtcDay(Date.parse(`${day}T00:00:00Z`) + days * dayMs);
}

/** Options for an `LRUCache` with a `ttl` whose entries expire by the clock. */
export function expiringBy(clock: Clock): {
  readonly perf: { readonly now: () => number };
  readonly ttlResolution: 0;
} {
  // In the cache, entries that were added at time 0 never expire. Another resolution would set timers.
  return { perf: { now: () => clock.monotonic() + 1 }, ttlResolution: 0 };
}
