import { AsyncLocalStorage } from "node:async_hooks";
import { sleepUnlessAborted } from "../../support/sleep.ts";

/**
 * All lookups for one event together may delay its acknowledgement so long: Slack's deadline is three seconds, and the
 * store needs its part.
 */
const lookupMs = 700;

/** On the clock of `performance.now()`. */
const deadlines = new AsyncLocalStorage<number>();

/** Runs `work`, in which all lookups together wait 700 milliseconds, counted from now. */
export function withLookupTime<T>(work: () => T): T {
  return deadlines.run(performance.now() + lookupMs, work);
}

/** Runs `work`, whose lookups wait for Slack: nothing waits for an acknowledgement there. */
export function withoutLookupTime<T>(work: () => T): T {
  return deadlines.exit(work);
}

/**
 * The result of a lookup. `undefined`: there is none within the time that is left for the current event, or within
 * `maxMs`. The lookup goes on. Outside of {@link withLookupTime} only `maxMs` limits it; default no limit.
 * @throws what the lookup throws in time
 */
export async function inLookupTime<T>(lookup: Promise<T>, maxMs = Infinity): Promise<T | undefined> {
  const leftMs = Math.min(maxMs, (deadlines.getStore() ?? Infinity) - performance.now());
  if (leftMs === Infinity) return await lookup;
  const timer = new AbortController();
  const timeout = sleepUnlessAborted(Math.max(0, leftMs), timer.signal).then(() => undefined);
  try {
    return await Promise.race([lookup, timeout]);
  } finally {
    timer.abort("found");
  }
}
