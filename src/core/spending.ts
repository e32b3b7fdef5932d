import type { Asker } from "./access.ts";
import type { ModelOperation, BilledAmounts, Usage } from "./gateway.ts";

/**
 * The scope of a budget. `person` has an `Author.id`. `place` has a term of an {@link Origin}, its `server`
 * or `channel`. `role` has one of its `roles`, and covers all people with that role together. `deployment`
 * covers everything that this deployment spends.
 */
export type BudgetScope =
  | { readonly kind: "person" | "place" | "role"; readonly id: string }
  | { readonly kind: "deployment" };

/** How long a budget lasts: a day or a month of UTC. */
export type BudgetPeriod = "day" | "month";

/** A limit on what a scope may spend in a period. */
export interface Budget {
  readonly scope: BudgetScope;
  readonly period: BudgetPeriod;
  /** At least 0, which admits no call. */
  readonly budgetUsd: number;
}

/** A budget with the amount that was spent in its current period. */
export interface BudgetState extends Budget {
  readonly spentUsd: number;
  /** Whether a part of `spentUsd` is estimated. */
  readonly isEstimated: boolean;
  /** Unix ms when the whole budget is free again. */
  readonly renewsAt: number;
}

/** The budgets of a server, workspace or channel and of roles, which add to the deployment's own. */
export interface PlaceBudgets {
  /** Runs before each gateway call. @throws ParleyError `store-unavailable` */
  budgetsFor(caller: Asker & { readonly personId: string }): Promise<readonly Budget[]>;
}

/** The person and purpose for which a gateway call is counted. */
export interface CallLabels {
  /** The `Author.id` of the person. */
  readonly personId: string;
  /** The `Origin.channel`, which is absent in direct messages and on the page. */
  readonly channel?: string | undefined;
  readonly model: string;
  readonly operation: ModelOperation;
}

/** Usage of one person in one channel with one model and operation on one day. */
export interface UsageRow extends CallLabels, Required<BilledAmounts> {
  /** The UTC day as `YYYY-MM-DD`. */
  readonly day: string;
  readonly calls: number;
  /** What the calls cost, as budgets count it. */
  readonly costUsd: number;
  /** The number of calls whose cost or amounts are estimated. */
  readonly estimatedCalls: number;
  /** How many of the estimated calls count at an assumed price, because their model has no known one. */
  readonly unpricedCalls: number;
}

/** An amount that is reserved for one call. */
export interface Reservation {
  readonly id: string;
  /** The scopes that count the reserve until it expires. */
  readonly scopes: readonly BudgetScope[];
  readonly reservedUsd: number;
  /** The day to which the call is charged, as `YYYY-MM-DD`. */
  readonly day: string;
  /** Unix ms. */
  readonly reservedAt: number;
}

/** A budget that leaves nothing for another call. */
export interface SpentBudget {
  readonly budget: Budget;
  readonly spentUsd: number;
  /** Reserved by running calls. If `spentUsd` is below the budget, a part is free again when they end. */
  readonly reservedUsd: number;
}

/** The usage of a call with the cost that counts for it, also where no price of the model is known. */
export type CountedUsage = Usage & Required<Pick<Usage, "costUsd">>;

/** What a call has used. */
export interface SettledCall {
  readonly labels: CallLabels;
  readonly usage: CountedUsage;
  /** The scopes that are charged, with or without a budget. */
  readonly scopes: readonly BudgetScope[];
}

/** What was spent. */
export type Spent = Pick<BudgetState, "spentUsd" | "isEstimated">;

/** Which usage to read. Both days are UTC, `YYYY-MM-DD`, and included. */
export interface UsageQuery {
  readonly fromDay: string;
  readonly toDay: string;
  /** Limits the result to this person. Absent: all people. */
  readonly personId?: string | undefined;
}

/**
 * Counts turns and money in the store, atomically over all instances, at a cost that does not grow. Counts
 * survive the end of the process. A power failure may lose the last moments, because counting adds no durable
 * write to a turn. Failures throw `store-unavailable`. Times are Unix ms.
 */
export interface SpendingLedger {
  /**
   * Counts a turn of a person unless there were more than `max` in a minute. It returns `undefined` if the
   * turn was counted, or else the number of milliseconds until there is room again.
   */
  countTurn(
    personId: string,
    options: { readonly max: number; readonly now: number },
  ): Promise<number | undefined>;
  /** Takes a counted turn back because the event turned out to be a redelivery. */
  uncountTurn(personId: string, now: number): Promise<void>;
  /**
   * Reserves the most that a call can cost if every budget has something left. All calls together can then
   * pass a budget by one reserve at most. A reserve that is not settled belongs to a dead process. It is
   * released after `ttlMs` (a setting of the store) to twice that time.
   */
  reserve(
    reserveUsd: number,
    options: { readonly budgets: readonly Budget[]; readonly now: number },
  ): Promise<Reservation | SpentBudget>;
  /** Frees the reserve and counts what was used, or nothing for `undefined`. Repeating it changes nothing. */
  settle(reservation: Reservation, used: SettledCall | undefined, now: number): Promise<void>;
  /** What a scope has spent in the period of `now`, by default the day, without reserves. */
  spent(scope: BudgetScope, now: number, period?: BudgetPeriod): Promise<Spent>;
  /** Who has spent most on the day of `now`, as {@link spent} counts it. Keys are left out. */
  highestSpender(now: number): Promise<(Spent & { readonly personId: string }) | undefined>;
  /**
   * Notes that people are told that a share of a budget is spent. It is true once in the budget's period, for
   * one process of all, and false where this share or a higher one is noted.
   */
  tell(budget: Budget, percent: number, now: number): Promise<boolean>;
  /**
   * Usage by day, person, channel, model and operation, the earliest day first. Kept for 400 days, or the
   * retention if shorter. It is read in pieces.
   */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Erases a person's rows. What the person spent still counts against budgets of today and this month. */
  forgetPerson(personId: string): Promise<void>;
  /** Ids with this prefix of the people for whom usage is kept. */
  countedPeople(idPrefix: string): Promise<readonly string[]>;
  /** Erases everything counted for people whose server or workspace is gone, and what they have spent. */
  forgetPeople(idPrefix: string): Promise<void>;
}
