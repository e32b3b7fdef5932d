import { LRUCache } from "lru-cache";
import type { ParleyError } from "../../core/errors.ts";

const maxEntries = 5000;
/** Over a limit a person is told again when it is free again, within these bounds. */
const limitMs = { min: 30_000, max: 10 * 60_000 };

/** When people who are refused again and again are told so again. */
export interface RefusalSchedule {
  /**
   * Whether to tell it now, and if so, notes that it is told. Each reason counts for itself.
   * @param who the person and the place
   * @param accessIntervalMs how long a refusal by the access rules is not repeated
   */
  isDue(error: ParleyError, who: string, accessIntervalMs: number): boolean;
  /** It could not be told: it is due again. */
  untold(error: ParleyError, who: string): void;
}

/**
 * Remembers the last 5,000 refusals.
 * @param now milliseconds on a steady clock
 */
export function createRefusalSchedule(now: () => number): RefusalSchedule {
  const nextAt = new LRUCache<string, number>({ max: maxEntries });

  function intervalMs({ code, retryAfterMs = limitMs.min }: ParleyError, accessIntervalMs: number): number {
    if (code === "access-denied") return accessIntervalMs;
    return Math.min(Math.max(retryAfterMs, limitMs.min), limitMs.max);
  }

  const keyOf = ({ code }: ParleyError, who: string): string => `${code} ${who}`;

  return {
    isDue(error, who, accessIntervalMs) {
      const key = keyOf(error, who);
      const time = now();
      if (time < (nextAt.get(key) ?? 0)) return false;
      nextAt.set(key, time + intervalMs(error, accessIntervalMs));
      return true;
    },
    untold(error, who) {
      nextAt.delete(keyOf(error, who));
    },
  };
}
