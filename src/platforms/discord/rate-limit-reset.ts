import type { REST } from "./rest.ts";

/** Smaller changes are corrections of the clock. */
const toleranceMs = 1000;

/**
 * The library keeps the ends of rate limits as wall time: after the clock was set back by a day, a bucket without
 * remaining requests would stay closed for a day. The returned function forgets all rate limits after such a step and
 * returns the number of steps so far; Discord's responses name the limits again.
 */
export function createRateLimitReset(rest: REST): () => number {
  let lastMs = Date.now() - performance.now();
  let steps = 0;
  return () => {
    const foundMs = Date.now() - performance.now();
    if (lastMs - foundMs > toleranceMs) {
      steps += 1;
      rest.handlers.clear();
      rest.globalDelay = null;
      rest.globalReset = -1;
    }
    lastMs = foundMs;
    return steps;
  };
}
