import type { Asker } from "./access.ts";
import type { ModelOperation, BilledAmounts } from "./gateway.ts";
import type { Rating } from "./storage.ts";

/**
 * What a budget counts. `person`: `Author.id`. `place`: a term of an {@link Origin} (its `server` or `channel`).
 * `deployment`: everything that this deployment spends.
 */
export type BudgetScope =
  | { readonly kind: "person"; readonly id: string }
  | { readonly kind: "place"; readonly id: string }
  | { readonly kind: "deployment" };

/** A limit on what a scope spends in a day (UTC). */
export interface Budget {
  readonly scope: BudgetScope;
  /** At least 0; 0 admits no call. */
  readonly budgetUsd: number;
}

/** A budget, and what of it is spent today. */
export interface BudgetState extends Budget {
  readonly spentUsd: number;
  /** Unix ms: from then on all of it is free again. */
  readonly renewsAt: number;
}

/** Budgets beside the deployment's own settings: those of a server, workspace or channel. */
export interface PlaceBudgets {
  /** Called before each gateway call, so it answers from memory where it can. @throws ParleyError `store-unavailable` */
  budgetsFor(caller: Asker & { readonly personId: string }): Promise<readonly Budget[]>;
}

/** Who and what a gateway call is counted for. */
export interface CallLabels {
  /** `Author.id` */
  readonly personId: string;
  /** `Origin.channel`; absent in direct messages and on the page. */
  readonly channel?: string | undefined;
  readonly model: string;
  readonly operation: ModelOperation;
}

/** Whose rating of whose answer it is. */
export interface RatingLabels extends CallLabels {
  /** The command that was answered. Absent: messages were. */
  readonly command?: string | undefined;
  /** Names the answer and its attempt: one rating of each person counts. */
  readonly answer: string;
  /** `YYYY-MM-DD`, UTC: when it was answered. */
  readonly day: string;
}

/**
 * Usage of one person in one channel with one model and operation on one day. Ratings that the person gave are rows of
 * their own, without calls, on the day of the answer.
 */
export interface UsageRow extends CallLabels, Required<BilledAmounts> {
  /** `YYYY-MM-DD`, UTC. */
  readonly day: string;
  readonly calls: number;
  /** As the gateway reported it, or computed from the model's price. */
  readonly costUsd: number;
  /** Calls whose cost is computed or whose amounts are estimated. */
  readonly estimatedCalls: number;
  /** Calls of models without a known price; they are not in `costUsd`. */
  readonly unpricedCalls: number;
  /** Of rated answers, the command that was answered. Absent: messages were, or the row has calls. */
  readonly command?: string;
  readonly goodRatings: number;
  readonly badRatings: number;
}

/** A reserve for one call. */
export interface Reservation {
  readonly id: string;
  /** Where the reserve is counted until it expires. */
  readonly scopes: readonly BudgetScope[];
  readonly reservedUsd: number;
  /** The day that the call is charged to, `YYYY-MM-DD`. */
  readonly day: string;
  /** Unix ms. */
  readonly reservedAt: number;
}

/** A budget that leaves nothing for a further call. */
export interface SpentBudget {
  readonly budget: Budget;
  readonly spentUsd: number;
  /** By calls that run now. Where `spentUsd` alone is below the budget, it is free again when they end. */
  readonly reservedUsd: number;
}

/** What a call has used. */
export interface SettledCall {
  readonly labels: CallLabels;
  readonly amounts: BilledAmounts;
  /** `undefined`: the model has no known price. */
  readonly costUsd: number | undefined;
  readonly isEstimated: boolean;
  /** What the budgets are charged: the cost, or a careful estimate where the price is unknown. */
  readonly chargedUsd: number;
  /** The scopes that are charged, whether or not they have a budget. */
  readonly scopes: readonly BudgetScope[];
}

/** Which usage to read. Days are `YYYY-MM-DD`, UTC, both included. */
export interface UsageQuery {
  readonly fromDay: string;
  readonly toDay: string;
  /** Only this person's. */
  readonly personId?: string | undefined;
}

/**
 * Counts turns and money in the store, atomically over all instances and at a cost that does not grow. What is counted
 * survives the end of the process; a power failure may lose the last moments, since counting adds no durable write to a
 * turn. Failures throw `store-unavailable`. Times are Unix ms.
 */
export interface SpendingLedger {
  /**
   * Counts a turn of a person unless that would be more than `max` in a minute. `undefined`: counted; otherwise after
   * how many milliseconds there is room again, and nothing is counted.
   */
  countTurn(
    personId: string,
    options: { readonly max: number; readonly now: number },
  ): Promise<number | undefined>;
  /** Takes a counted turn back: the event turned out to be a redelivery. */
  uncountTurn(personId: string, now: number): Promise<void>;
  /**
   * Reserves the most that a call can cost while every budget has something left, so that all calls together never
   * pass a budget by more than one reserve. A reserve that is not settled is released between `ttlMs` and twice that
   * later (a setting of the store): its process has died.
   */
  reserve(
    reserveUsd: number,
    options: { readonly budgets: readonly Budget[]; readonly now: number },
  ): Promise<Reservation | SpentBudget>;
  /** Frees the reserve and counts what was used (`undefined`: nothing). Repeating it changes nothing. */
  settle(reservation: Reservation, used: SettledCall | undefined, now: number): Promise<void>;
  /** Counts a person's rating of an answer in the place of an earlier one. Repeating it changes nothing. */
  rate(labels: RatingLabels, rating: Rating, now: number): Promise<void>;
  /** What a scope has spent on the day of `now`, without reserves. */
  spentUsd(scope: BudgetScope, now: number): Promise<number>;
  /** Usage by day, person, channel, model, operation and rated command, in any order. Kept for 400 days, or the retention if shorter. */
  usage(query: UsageQuery): Promise<readonly UsageRow[]>;
  /** Erases a person's rows. What the person has spent today still counts against today's budgets. */
  forgetPerson(personId: string): Promise<void>;
  /** Ids of people that begin so, and for whom usage is kept. */
  countedPeople(idPrefix: string): Promise<readonly string[]>;
  /** Erases everything that is counted for them, today's spending included: their server or workspace is gone. */
  forgetPeople(idPrefix: string): Promise<void>;
}
