import type { Clock } from "../core/clock.ts";

/** Options of an `LRUCache` with a `ttl`, whose entries expire by the clock. */
export function expiringBy(clock: Clock): {
  readonly perf: { readonly now: () => number };
  readonly ttlResolution: 0;
} {
  // To the cache, what was added at 0 never expires; and with another resolution it sets timers of its own.
  return { perf: { now: () => clock.monotonic() + 1 }, ttlResolution: 0 };
}
