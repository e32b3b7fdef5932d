import type { Actor, Asker } from "../../core/access.ts";
import { budgetNotice } from "../../core/error-messages.ts";
import type { ReplyAddress } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import type { PersonOverview, Receiver } from "../../core/receiver.ts";
import type { SpendingLedger, BudgetState } from "../../core/spending.ts";
import type { Log } from "../../core/telemetry.ts";
import { toUtcDay } from "../../support/clock.ts";
import type { Budgets, Caller } from "./budgets.ts";

/** The options of {@link createPersonOverview}. */
interface PersonOverviewOptions {
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly settings: {
    explainTo(by: Actor): Promise<Pick<PersonOverview, "language" | "settings">>;
  };
  readonly ledger: Pick<SpendingLedger, "usage">;
  readonly budgets: Pick<Budgets, "inForce">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** Creates {@link Receiver.overview}. */
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

/** The shares of a budget of which people are told, in percent, the highest first. */
const shares = [100, 80, 50] as const;
/** Tells people once in a period that a share of a budget is spent. */
export interface BudgetWarnings {
  /** Tells the person of a turn about the own budgets, beside the answer and alone. It never throws. */
  afterTurn(turn: {
    readonly caller: Caller;
    readonly platform: Pick<Platform, "tellAlone">;
    /** The address of the person's event. */
    readonly address: ReplyAddress;
  }): Promise<void>;
}

interface BudgetWarningsOptions {
  readonly budgets: Pick<Budgets, "inForce">;
  readonly ledger: Pick<SpendingLedger, "tell">;
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** Creates {@link BudgetWarnings}. */
export function createBudgetWarnings(options: BudgetWarningsOptions): BudgetWarnings {
  const { budgets, ledger, log, now } = options;
  return {
    async afterTurn({ caller, platform, address }) {
      try {
        const notices: string[] = [];
        for (const state of await budgets.inForce(caller)) {
          // What others have spent is for admins.
          if (state.scope.kind !== "person") continue;
          const percent = passedShare(state);
          if (percent !== undefined && (await ledger.tell(state, percent, now())))
            notices.push(budgetNotice(state, percent, now()));
        }
        if (notices.length > 0) await platform.tellAlone(address, caller.personId, notices.join("\n"));
      } catch (error) {
        log.warn({ err: error }, "a person was not told about a budget");
      }
    },
  };
}

/** The highest share that is spent. A budget of which nothing was spent has none. */
function passedShare({ spentUsd, budgetUsd }: BudgetState): number | undefined {
  if (spentUsd <= 0) return undefined;
  // A billionth is the smallest amount, so that no rounding error may hide a share.
  return shares.find((percent) => spentUsd + 1e-9 >= (budgetUsd * percent) / 100);
}
