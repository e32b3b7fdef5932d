import type { Asker } from "../../core/access.ts";
import type { Receiver } from "../../core/platform.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import { toUtcDay } from "../../support/utc-day.ts";
import type { LayeredSettings } from "../settings/layered-settings.ts";
import type { Budgets } from "./budgets.ts";

/** What {@link createPersonOverview} needs. */
export interface PersonOverviewOptions {
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly settings: Pick<LayeredSettings, "explainTo">;
  readonly ledger: Pick<SpendingLedger, "usage">;
  readonly budgets: Pick<Budgets, "inForce">;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** @see {@link Receiver.overview} */
export function createPersonOverview(options: PersonOverviewOptions): Receiver["overview"] {
  const { expectAllowed, settings, ledger, budgets, now } = options;
  return async (by) => {
    await expectAllowed(by);
    const personId = by.author.id;
    const today = toUtcDay(now());
    const [explained, usage, inForce] = await Promise.all([
      settings.explainTo(by),
      ledger.usage({ fromDay: `${today.slice(0, 7)}-01`, toDay: today, personId }),
      budgets.inForce({ ...by, personId }),
    ]);
    return { ...explained, today, usage, budgets: inForce };
  };
}
