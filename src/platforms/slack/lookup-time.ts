import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../support/clock.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";

/**
 * All lookups for one event together may delay its acknowledgement so long: Slack's deadline is three seconds, and the
 * store needs its part.
 */
const lookupMs = 700;

const deadlines = new AsyncLocalStorage<{
  /** By {@link Clock.monotonic}. */
  readonly at: number;
  readonly clock: Clock;
}>();

/** Runs `work`, in which all lookups together wait 700 milliseconds, counted from now. */
export function withLookupTime<T>(clock: Clock, work: () => T): T {
  return deadlines.run({ at: clock.monotonic() + lookupMs, clock }, work);
}

/** Runs `work`, whose lookups wait for Slack: nothing waits for an acknowledgement there. */
export function withoutLookupTime<T>(work: () => T): T {
  return deadlines.exit(work);
}

/**
 * The result of a lookup. `undefined`: there is none within the time that is left for the current event, or within
 * `maxMs`. The lookup goes on. Outside of {@link withLookupTime} only `maxMs` limits it; default no limit.
 * @param clock where no time is left for an event; default: the time of this process
 * @throws what the lookup throws in time
 */
export async function inLookupTime<T>(
  lookup: Promise<T>,
  maxMs = Infinity,
  clock: Clock = systemClock,
): Promise<T | undefined> {
  const deadline = deadlines.getStore();
  const time = deadline?.clock ?? clock;
  const leftMs = Math.min(maxMs, deadline === undefined ? Infinity : deadline.at - time.monotonic());
  if (leftMs === Infinity) return await lookup;
  const timer = new AbortController();
  const timeout = sleepUnlessAborted(Math.max(0, leftMs), timer.signal, time).then(() => undefined);
  try {
    return await Promise.race([lookup, timeout]);
  } finally {
    timer.abort("found");
  }
}
