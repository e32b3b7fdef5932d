import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { SpendingLedger } from "../../core/spending.ts";

/** The result of counting a request. */
interface CountedTurn {
  /** The error `rate-limited` for one request too many, which is not counted. */
  readonly refusal: ParleyError | undefined;
  /** Takes the count back because the request was not accepted. While the store is away it stays counted. */
  undo(): Promise<void>;
}

/** Limits how often a person may ask. */
export interface TurnRate {
  count(personId: string): Promise<CountedTurn>;
}

interface TurnRateOptions {
  readonly ledger: Pick<SpendingLedger, "countTurn" | "uncountTurn">;
  /** The limit for one minute, where 0 means no limit. */
  readonly max: number;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

const notCounted: CountedTurn = { refusal: undefined, undo: () => Promise.resolve() };

/** Creates the {@link TurnRate}. */
export function createTurnRate({ ledger, max, now }: TurnRateOptions): TurnRate {
  async function undo(personId: string, countedAt: number): Promise<void> {
    try {
      await ledger.uncountTurn(personId, countedAt);
    } catch (error) {
      if (!isParleyError(error, "store-unavailable")) throw error;
    }
  }

  return {
    async count(personId) {
      if (max === 0) return notCounted;
      const countedAt = now();
      let retryAfterMs: number | undefined;
      try {
        retryAfterMs = await ledger.countTurn(personId, { max, now: countedAt });
      } catch (error) {
        // Accepting the request then fails too, unless the outage ends while that is retried.
        if (!isParleyError(error, "store-unavailable")) throw error;
        return notCounted;
      }
      if (retryAfterMs === undefined) return { refusal: undefined, undo: () => undo(personId, countedAt) };
      const refusal = new ParleyError("rate-limited", "too many requests of one person in a minute", {
        retryAfterMs,
        detail: { max },
      });
      return { ...notCounted, refusal };
    },
  };
}
