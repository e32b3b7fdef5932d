import { isParleyError, ParleyError } from "../core/errors.ts";
import type { Reservation, SettledCall, SpendingLedger } from "../core/spending.ts";
import type { Log } from "../core/telemetry.ts";
import { backoffMs, backoffs, retry } from "./retry.ts";

/** With this many attempts, settling is repeated for about ten minutes. */
const settleAttempts = 20;

/** Ends the reservations of a ledger, also while its store fails. */
interface Settlement {
  /**
   * Counts what a call has used, or frees its reserve alone for `undefined`. It never throws: where the store
   * fails, it is repeated in the background, since the ledger settles a reserve once.
   */
  settle(reservation: Reservation, used: SettledCall | undefined): Promise<void>;
  /** Ends repetitions. What is not settled by then stays reserved until it expires. */
  close(): void;
}

/** Creates the settlement of the calls of people, or of the embedded gateway's keys. `now` is in Unix ms. */
export function createSettlement(
  ledger: Pick<SpendingLedger, "settle">,
  { log, now }: { readonly log: Log; readonly now: () => number },
): Settlement {
  const closing = new AbortController();
  return {
    async settle(reservation, used) {
      const attempt = (): Promise<void> => ledger.settle(reservation, used, now());
      try {
        await attempt();
      } catch (error) {
        log.warn({ err: error }, "a gateway call was not counted; repeated in the background");
        // The answer does not wait for it.
        void retry(attempt, {
          signal: closing.signal,
          delayMs: (failure, count) =>
            isParleyError(failure, "store-unavailable") && count < settleAttempts
              ? backoffMs(count, backoffs.outage)
              : undefined,
        }).catch((last: unknown) => {
          const of = { model: used?.labels.model, usd: used?.usage.costUsd };
          log.error({ err: last, ...of }, "a gateway call is not counted");
        });
      }
    },
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
  };
}
