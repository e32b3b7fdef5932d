import { LRUCache } from "lru-cache";
import type { Asker } from "../../core/access.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Gateway, ModelOperation, Usage } from "../../core/gateway.ts";
import { type BilledAmounts, costOf, type ModelPrice } from "../../core/model-price.ts";
import type {
  Budget,
  BudgetScope,
  BudgetState,
  CallLabels,
  PlaceBudgets,
  Reservation,
  SettledCall,
  SpendingLedger,
  SpentBudget,
} from "../../core/spending.ts";
import type { Log } from "../../core/telemetry.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import { endOfUtcDay, toUtcDay } from "../../support/utc-day.ts";
import type { WorstCase } from "./worst-case.ts";

/**
 * What a model without a known price is taken to cost where there is a budget: more than most models do, since a
 * budget must not be passed for want of a price. MODEL_PRICES replaces it.
 */
const assumedPrice = {
  inputPerMillionUsd: 15,
  outputPerMillionUsd: 75,
  perImageUsd: 0.25,
  perAudioMinuteUsd: 0.02,
} as const satisfies ModelPrice;
/** Amounts that every price makes dearer than nothing. */
const someOfAll: BilledAmounts = { promptTokens: 1e6, completionTokens: 1e6, audioSeconds: 60, images: 1 };
/** When calls that run now may have ended, in milliseconds. */
const runningMs = 15_000;
/** Settling is repeated for about ten minutes. */
const settleAttempts = 20;
const settleBackoff = { baseMs: 250, maxMs: 60_000 };

/** Who makes a gateway call. */
export interface Caller extends Asker {
  /** `Author.id` */
  readonly personId: string;
}

/** One call that has been admitted. Contract: `settle` or `release` is called once; neither throws. */
export interface Charge {
  /** The answer has come, with its usage. `model`: the one that answered. */
  settle(usage: Usage, model: string): Promise<void>;
  /** The call broke off: what it may have been billed, estimated. `undefined`: nothing. */
  release(amounts: BilledAmounts | undefined): Promise<void>;
}

export interface Budgets {
  /**
   * Reserves the most that a call can cost.
   * @throws ParleyError `over-budget`, `store-unavailable`
   */
  reserve(caller: Caller, operation: ModelOperation, model: string, worst: WorstCase): Promise<Charge>;
  /** The error `over-budget` where a budget of the caller is spent, reserves apart. @throws ParleyError `store-unavailable` */
  spentError(caller: Caller): Promise<ParleyError | undefined>;
  /** Whether calls of a model are known to cost nothing: no budget refuses them. */
  isFree(operation: ModelOperation, model: string): boolean;
  /** The budgets that apply to a caller, with what is spent of them. @throws ParleyError `store-unavailable` */
  inForce(caller: Caller): Promise<readonly BudgetState[]>;
  /** Repeats nothing more in the background: what is not settled by now stays reserved until it expires. */
  close(): void;
}

export interface BudgetsOptions {
  readonly ledger: SpendingLedger;
  readonly gateway: Pick<Gateway, "highestPrice" | "knownModels">;
  /** `BUDGET_PERSON_DAY_USD` */
  readonly personDayUsd: number | undefined;
  /** `BUDGET_DAY_USD` */
  readonly dayUsd: number | undefined;
  readonly places: PlaceBudgets;
  readonly log: Log;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Budgets of the deployment, of each person and of places, kept in the ledger. */
export function createBudgets(options: BudgetsOptions): Budgets {
  const { ledger, gateway, personDayUsd, dayUsd, places, log, now } = options;
  const closing = new AbortController();
  const warned = new LRUCache<string, true>({ max: 1000 });

  /** For a budget. Unknown prices are assumed, with one warning for each model. */
  function toChargedUsd(operation: ModelOperation, model: string, amounts: BilledAmounts): number {
    const price = gateway.highestPrice(operation, model);
    return costOf(price !== undefined && isPriced(operation, price) ? price : assumedPrice, amounts) ?? 0;
  }

  function warnOfUnknownPrice(operation: ModelOperation, model: string): void {
    if (isPriced(operation, gateway.highestPrice(operation, model)) || warned.has(model)) return;
    warned.set(model, true);
    log.warn(
      { model, operation },
      "the price of this model or of a fallback is not known, so budgets count a high one: set MODEL_PRICES",
    );
  }

  /** The ledger counts by model, so the names must be few: those of requests and of the gateway's list. */
  function labelOf(asked: string, answered: string): string {
    return answered === asked || gateway.knownModels().some(({ id }) => id === answered) ? answered : asked;
  }

  async function budgetsOf(caller: Caller): Promise<readonly Budget[]> {
    const person = { kind: "person", id: caller.personId } as const;
    return [
      ...(personDayUsd === undefined ? [] : [{ scope: person, budgetUsd: personDayUsd }]),
      ...(await places.budgetsFor(caller)),
      ...(dayUsd === undefined ? [] : [{ scope: { kind: "deployment" } as const, budgetUsd: dayUsd }]),
    ];
  }

  async function settle(reservation: Reservation, used: SettledCall | undefined): Promise<void> {
    const attempt = (): Promise<void> => ledger.settle(reservation, used, now());
    try {
      await attempt();
    } catch (error) {
      log.warn({ err: error }, "a gateway call was not counted; repeated in the background");
      // The answer does not wait for it. Repeating is safe: the ledger settles a reserve once.
      void retry(attempt, {
        signal: closing.signal,
        delayMs: (failure, count) =>
          isParleyError(failure, "store-unavailable") && count < settleAttempts
            ? backoffMs(count, settleBackoff)
            : undefined,
      }).catch((last: unknown) => {
        log.error(
          { err: last, model: used?.labels.model, usd: used?.chargedUsd },
          "a gateway call is not counted",
        );
      });
    }
  }

  async function inForce(caller: Caller): Promise<readonly BudgetState[]> {
    const renewsAt = endOfUtcDay(toUtcDay(now()));
    const found = await budgetsOf(caller);
    return Promise.all(
      found.map(async (budget) => ({
        ...budget,
        spentUsd: await ledger.spentUsd(budget.scope, now()),
        renewsAt,
      })),
    );
  }

  return {
    inForce,
    async spentError(caller) {
      const spent = (await inForce(caller)).find(({ spentUsd, budgetUsd }) => spentUsd >= budgetUsd);
      return spent === undefined ? undefined : overBudget({ budget: spent, spentUsd: spent.spentUsd }, now());
    },
    isFree: (operation, model) => toChargedUsd(operation, model, someOfAll) === 0,
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    async reserve(caller, operation, model, worst) {
      const budgets = await budgetsOf(caller);
      if (budgets.length > 0) warnOfUnknownPrice(operation, model);
      const reserveUsd = budgets.length === 0 ? 0 : toChargedUsd(operation, model, worst.most);
      const result = await ledger.reserve(reserveUsd, { budgets, now: now() });
      if (!("id" in result)) throw overBudget(result, now());
      const labels: CallLabels = {
        personId: caller.personId,
        channel: caller.origin?.channel,
        model,
        operation,
      };
      const scopes = scopesOf(caller);
      return {
        settle: (usage, answered) =>
          settle(result, {
            labels: { ...labels, model: labelOf(model, answered) },
            amounts: usage,
            costUsd: usage.costUsd,
            chargedUsd: usage.costUsd ?? toChargedUsd(operation, model, usage),
            isEstimated: usage.isEstimated,
            scopes,
          }),
        async release(amounts) {
          if (amounts === undefined) {
            await settle(result, undefined);
            return;
          }
          const price = gateway.highestPrice(operation, model);
          await settle(result, {
            labels,
            amounts,
            costUsd: isPriced(operation, price) && price !== undefined ? costOf(price, amounts) : undefined,
            chargedUsd: toChargedUsd(operation, model, amounts),
            isEstimated: true,
            scopes,
          });
        },
      };
    },
  };
}

/** Charged whether or not there is a budget, so that one that is set during the day counts all of it. */
function scopesOf({ personId, origin }: Caller): BudgetScope[] {
  const places = [origin?.server, origin?.channelPlace ?? origin?.channel].filter((id) => id !== undefined);
  return [
    { kind: "person", id: personId },
    ...places.map((id) => ({ kind: "place", id }) as const),
    { kind: "deployment" },
  ];
}

/** Whether everything that the operation is billed by has a price. */
function isPriced(operation: ModelOperation, price: ModelPrice | undefined): boolean {
  if (price === undefined) return false;
  const hasTokens = price.inputPerMillionUsd !== undefined && price.outputPerMillionUsd !== undefined;
  if (operation === "image") return price.perImageUsd !== undefined || hasTokens;
  if (operation === "transcription") return price.perAudioMinuteUsd !== undefined || hasTokens;
  return hasTokens;
}

function overBudget(
  { budget, spentUsd }: Pick<SpentBudget, "budget" | "spentUsd">,
  now: number,
): ParleyError {
  const isReserved = spentUsd < budget.budgetUsd;
  return new ParleyError("over-budget", `the budget of the ${budget.scope.kind} is used up or reserved`, {
    retryAfterMs: isReserved ? runningMs : endOfUtcDay(toUtcDay(now)) - now,
    detail: { scope: budget.scope.kind, budgetUsd: budget.budgetUsd, isReserved: isReserved ? 1 : 0 },
  });
}
