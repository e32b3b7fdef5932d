import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import { createRecent } from "../../support/recent.ts";

/** A request that is counted, or is one too many. */
interface CountedTurn {
  /** The error `rate-limited`: nothing is counted. */
  readonly refusal: ParleyError | undefined;
  /** Takes the count back: the request was not taken. While the store is unavailable, before the next count. */
  undo(): Promise<void>;
}

/** How often a person may ask. */
export interface TurnRate {
  count(personId: string): Promise<CountedTurn>;
}

interface TurnRateOptions {
  readonly ledger: Pick<SpendingLedger, "countTurn" | "uncountTurn">;
  /** In a minute. 0: no limit. */
  readonly max: number;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** People whose counts wait to be taken back. */
const maxOwing = 10_000;
/** After so long a count no longer matters, in milliseconds. */
const countedMs = 2 * 60_000;

const notCounted: CountedTurn = { refusal: undefined, undo: () => Promise.resolve() };

/** @see {@link TurnRate} */
export function createTurnRate({ ledger, max, now }: TurnRateOptions): TurnRate {
  /** When they were counted, by person: taking them back failed. */
  const owed = createRecent<readonly number[]>(maxOwing, countedMs);

  async function undo(personId: string, countedAt: number): Promise<void> {
    try {
      await ledger.uncountTurn(personId, countedAt);
    } catch (error) {
      if (!isParleyError(error, "store-unavailable")) throw error;
      owed.set(personId, [...(owed.get(personId) ?? []), countedAt]);
    }
  }

  async function settleOwed(personId: string): Promise<void> {
    const times = owed.get(personId) ?? [];
    owed.delete(personId);
    for (const countedAt of times) await undo(personId, countedAt);
  }

  return {
    async count(personId) {
      if (max === 0) return notCounted;
      await settleOwed(personId);
      const countedAt = now();
      let retryAfterMs: number | undefined;
      try {
        retryAfterMs = await ledger.countTurn(personId, { max, now: countedAt });
      } catch (error) {
        // Accepting the request fails as well, unless the outage is over by then: it is retried for a moment.
        if (!isParleyError(error, "store-unavailable")) throw error;
        return notCounted;
      }
      if (retryAfterMs === undefined)
        return {
          refusal: undefined,
          undo: () => undo(personId, countedAt),
        };
      const refusal = new ParleyError("rate-limited", "too many requests of one person in a minute", {
        retryAfterMs,
        detail: { max },
      });
      return { ...notCounted, refusal };
    },
  };
}
