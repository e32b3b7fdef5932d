import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { SpendingLedger } from "../../core/spending.ts";

/** How often a person may ask. */
export interface TurnRate {
  /** Counts a request; resolves to the error `rate-limited`, with nothing counted, where it is one too many. */
  count(personId: string): Promise<ParleyError | undefined>;
  /** Takes the last one back. */
  uncount(personId: string): Promise<void>;
}

export interface TurnRateOptions {
  readonly ledger: Pick<SpendingLedger, "countTurn" | "uncountTurn">;
  /** In a minute. 0: no limit. */
  readonly max: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** @see {@link TurnRate} */
export function createTurnRate({ ledger, max, now }: TurnRateOptions): TurnRate {
  return {
    async count(personId) {
      if (max === 0) return undefined;
      let retryAfterMs: number | undefined;
      try {
        retryAfterMs = await ledger.countTurn(personId, { max, now: now() });
      } catch (error) {
        // Accepting the request fails as well, unless the outage is over by then: it is retried for a moment.
        if (!isParleyError(error, "store-unavailable")) throw error;
      }
      if (retryAfterMs === undefined) return undefined;
      return new ParleyError("rate-limited", "too many requests of one person in a minute", {
        retryAfterMs,
        detail: { max },
      });
    },
    async uncount(personId) {
      if (max > 0) await ledger.uncountTurn(personId, now());
    },
  };
}
