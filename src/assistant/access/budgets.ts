import type { Asker } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import {
  type BilledAmounts,
  type Gateway,
  type ModelOperation,
  type Usage,
  costOf,
  isPriced,
  type ModelPrice,
} from "../../core/gateway.ts";
import type {
  SpendingLedger,
  Budget,
  BudgetPeriod,
  BudgetScope,
  BudgetState,
  CallLabels,
  CountedUsage,
  PlaceBudgets,
  SpentBudget,
} from "../../core/spending.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { endOfUtcDay, endOfUtcMonth, toUtcDay, toUtcMonth } from "../../support/clock.ts";
import { createSettlement } from "../../support/settle-calls.ts";
import { createRecent } from "../../support/recent.ts";
import type { WorstCase } from "./call-estimates.ts";

/**
 * The assumed price of models without a known one, if there is a budget. It is higher than most prices,
 * because a missing price must not let a budget be exceeded. MODEL_PRICES replaces it.
 */
const assumedPrice = {
  inputPerMillionUsd: 15,
  outputPerMillionUsd: 75,
  perImageUsd: 0.25,
  perAudioMinuteUsd: 0.02,
} as const satisfies ModelPrice;
/** Amounts that cost something at any price above zero. */
const someOfAll: BilledAmounts = { promptTokens: 1e6, completionTokens: 1e6, audioSeconds: 60, images: 1 };
/**
 * What is charged for a call is at most so many times its reserve, and at least this much. Services add fees
 * for searches and thoughts, but a mistake in one answer must not use up the budgets of a month.
 */
const mostPerCall = { reserves: 20, leastUsd: 1 };
/** The time after which running calls may have ended, in milliseconds. */
const runningMs = 15_000;

/** The person who makes a gateway call. */
export interface Caller extends Asker {
  /** The `Author.id` of the person. */
  readonly personId: string;
  /** Whether calls are refused that might use up a budget, since nobody asked for them. Default false. */
  readonly leavesRest?: true;
}

/** An admitted call. Exactly one of `settle` and `release` must be called, once. Neither throws. */
export interface Charge {
  /** The usage as it counts. Whoever shows a cost shows this one. */
  counted(usage: Usage): CountedUsage;
  /** Charges a call. `model` is the one that answered: by default the one that was asked. */
  settle(usage: CountedUsage, model?: string): Promise<void>;
  /** Frees the reserve of a call that cost nothing. */
  release(): Promise<void>;
}

export interface Budgets {
  /**
   * Reserves the highest cost of a call.
   * @throws ParleyError `over-budget`, `store-unavailable`
   */
  reserve(caller: Caller, operation: ModelOperation, model: string, worst: WorstCase): Promise<Charge>;
  /**
   * The error `over-budget` if spending alone uses up a budget: the one that lasts longest.
   * @throws ParleyError `store-unavailable`
   */
  spentError(caller: Caller): Promise<ParleyError | undefined>;
  /** Whether a model is known to cost nothing, so that no budget refuses its calls. */
  isFree(operation: ModelOperation, model: string): boolean;
  /** The budgets of a caller with what is spent. @throws ParleyError `store-unavailable` */
  inForce(caller: Caller): Promise<readonly BudgetState[]>;
  /** Ends repetitions in the background. What is not settled by then stays reserved until it expires. */
  close(): void;
}

/** The budgets of the settings, in USD. */
export interface ConfiguredBudgets {
  /** `BUDGET_PERSON_DAY_USD` and `BUDGET_PERSON_MONTH_USD`. */
  readonly personDayUsd: number | undefined;
  readonly personMonthUsd: number | undefined;
  /** `BUDGET_DAY_USD` and `BUDGET_MONTH_USD`. */
  readonly dayUsd: number | undefined;
  readonly monthUsd: number | undefined;
}

interface BudgetsOptions extends ConfiguredBudgets {
  readonly ledger: SpendingLedger;
  readonly gateway: Pick<Gateway, "highestPrice" | "knownModels">;
  readonly places: PlaceBudgets;
  readonly meter: Meter;
  readonly log: Log;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/** Creates the budgets of the deployment, each person and places, which the ledger keeps. */
export function createBudgets(options: BudgetsOptions): Budgets {
  const { ledger, gateway, personDayUsd, personMonthUsd, dayUsd, monthUsd, places, meter, log, now } =
    options;
  const settlement = createSettlement(ledger, { log, now });
  const warned = createRecent(1000);

  /** What amounts cost. An unknown price is assumed. */
  function priced(
    operation: ModelOperation,
    model: string,
    amounts: BilledAmounts,
  ): Pick<CountedUsage, "costUsd" | "isAssumed"> {
    const price = gateway.highestPrice(operation, model);
    return isPriced(operation, price)
      ? { costUsd: costOf(price, amounts) ?? 0 }
      : { costUsd: costOf(assumedPrice, amounts) ?? 0, isAssumed: true };
  }

  function warnOfUnknownPrice(operation: ModelOperation, model: string): void {
    if (isPriced(operation, gateway.highestPrice(operation, model)) || warned.has(model)) return;
    warned.set(model, true);
    log.warn(
      { reason: model, operation },
      "the price of this model or of a fallback is not known, so budgets count a high one: set MODEL_PRICES",
    );
  }

  /** The ledger counts by model, so it only gets the names of requests and of the gateway's list. */
  function labelOf(asked: string, answered: string): string {
    return answered === asked || gateway.knownModels().some(({ id }) => id === answered) ? answered : asked;
  }

  async function budgetsOf(caller: Caller): Promise<readonly Budget[]> {
    const person = { kind: "person", id: caller.personId } as const;
    const everybody = { kind: "deployment" } as const;
    return [
      ...toBudgets(person, { day: personDayUsd, month: personMonthUsd }),
      ...(await places.budgetsFor(caller)),
      ...toBudgets(everybody, { day: dayUsd, month: monthUsd }),
    ];
  }

  async function inForce(caller: Caller): Promise<readonly BudgetState[]> {
    const found = await budgetsOf(caller);
    return Promise.all(
      found.map(async (budget) => ({
        ...budget,
        ...(await ledger.spent(budget.scope, now(), budget.period)),
        renewsAt: renewalOf(budget, now()),
      })),
    );
  }

  async function spentError(caller: Caller): Promise<ParleyError | undefined> {
    const spent = (await inForce(caller)).filter(({ spentUsd, budgetUsd }) => spentUsd >= budgetUsd);
    // A new budget for the day is of no use while that for the month is spent.
    const [last] = spent.toSorted((a, b) => b.renewsAt - a.renewsAt);
    return last === undefined ? undefined : overBudget({ budget: last, spentUsd: last.spentUsd }, now());
  }

  return {
    inForce,
    spentError,
    isFree: (operation, model) => priced(operation, model, someOfAll).costUsd === 0,
    close: () => settlement.close(),
    async reserve(caller, operation, model, worst) {
      const budgets = await budgetsOf(caller);
      if (budgets.length > 0) warnOfUnknownPrice(operation, model);
      const worstUsd = priced(operation, model, worst.most).costUsd;
      const mostUsd = Math.max(worstUsd * mostPerCall.reserves, mostPerCall.leastUsd);
      const reserveUsd = budgets.length === 0 ? 0 : worstUsd;
      const left = caller.leavesRest === true ? reserveUsd : 0;
      const result = await ledger.reserve(reserveUsd, {
        budgets: budgets.map((budget) => ({ ...budget, budgetUsd: Math.max(0, budget.budgetUsd - left) })),
        now: now(),
      });
      if (!("id" in result)) throw (await spentError(caller)) ?? overBudget(result, now());
      const labels: CallLabels = {
        personId: caller.personId,
        channel: caller.origin?.channel,
        model,
        operation,
      };
      const scopes = [...scopesOf(caller), ...budgets.map(({ scope }) => scope)];
      return {
        counted(usage) {
          const { costUsd: reported } = usage;
          const cost = reported === undefined ? priced(operation, model, usage) : { costUsd: reported };
          const costUsd = Math.min(cost.costUsd, mostUsd);
          if (costUsd < cost.costUsd)
            log.error(
              { model, operation, reportedUsd: cost.costUsd, chargedUsd: costUsd },
              "the gateway reports far more than this call can cost; budgets count a part of it",
            );
          const isEstimated = usage.isEstimated || reported === undefined || costUsd < cost.costUsd;
          return { ...usage, ...cost, costUsd, isEstimated };
        },
        settle(usage, answered = model) {
          const counted = { ...labels, model: labelOf(model, answered) };
          meter({ kind: "charged", model: counted.model, usage });
          return settlement.settle(result, { labels: counted, usage, scopes });
        },
        release: () => settlement.settle(result, undefined),
      };
    },
  };
}

/** The budgets of a scope for those periods that have one. */
export function toBudgets(
  scope: BudgetScope,
  amounts: Readonly<Record<BudgetPeriod, number | undefined>>,
): Budget[] {
  return (["day", "month"] as const).flatMap((period) => {
    const budgetUsd = amounts[period];
    return budgetUsd === undefined ? [] : [{ scope, period, budgetUsd }];
  });
}

/** When the whole budget is free again, in Unix ms. */
function renewalOf({ period }: Budget, now: number): number {
  return period === "day" ? endOfUtcDay(toUtcDay(now)) : endOfUtcMonth(toUtcMonth(now));
}

/**
 * These scopes are charged even without a budget, so that one that is set later counts the whole period.
 * Roles are charged only where they have a budget, because people may have hundreds of them.
 */
function scopesOf({ personId, origin }: Caller): BudgetScope[] {
  const places = [origin?.server, origin?.channelPlace ?? origin?.channel].filter((id) => id !== undefined);
  return [
    { kind: "person", id: personId },
    ...places.map((id) => ({ kind: "place", id }) as const),
    { kind: "deployment" },
  ];
}

function overBudget(
  { budget, spentUsd }: Pick<SpentBudget, "budget" | "spentUsd">,
  now: number,
): ParleyError {
  const isReserved = spentUsd < budget.budgetUsd;
  return new ParleyError("over-budget", `the budget of the ${budget.scope.kind} is used up or reserved`, {
    retryAfterMs: isReserved ? runningMs : renewalOf(budget, now) - now,
    detail: {
      scope: budget.scope.kind,
      period: budget.period,
      budgetUsd: budget.budgetUsd,
      isReserved: isReserved ? 1 : 0,
      renewsAt: renewalOf(budget, now),
    },
  });
}
