import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { ApiError } from "../api-error.ts";
import type { UpstreamUsage } from "../upstreams/upstream-usage.ts";
import { endOf, type KeyUsage, type Period } from "./key-usage.ts";

/** The budgets of a key, in USD. Absent ones do not apply. */
export interface Budgets {
  readonly budgetUsdPerDay?: number | undefined;
  readonly budgetUsdPerMonth?: number | undefined;
}

/** Part of a budget that is kept for one running request. */
export interface Reservation {
  /** Frees the reservation and records what was used, if anything. Called once. Never throws. */
  settle(used: { readonly usage: UpstreamUsage; readonly costUsd: number } | undefined): Promise<void>;
}

/**
 * Spending of keys against their budgets. A request is admitted while spent and reserved together are below the budget,
 * so both together never pass it by more than one request's reserve. Atomic within this process only.
 */
export interface BudgetLedger {
  /** @throws ApiError 402 `budget_exceeded` when a budget is spent */
  expectBudget(keyId: string, budgets: Budgets): Promise<void>;
  /**
   * @param mustFit the reserve itself must be within the budget: nothing says that the request will cost less
   * @throws ApiError 402 `budget_exceeded` (spent, or less than must fit), 429 `budget_reserved` (the rest is reserved by
   *   other requests)
   */
  reserve(keyId: string, budgets: Budgets, worstUsd: number, mustFit?: boolean): Promise<Reservation>;
}

/** Settings of {@link createBudgetLedger}. */
export interface BudgetLedgerOptions {
  readonly keyUsage: KeyUsage;
  readonly now: () => number;
  /** The usage could not be stored. It counts until the end of the process. */
  onLost(keyId: string, costUsd: number, error: unknown): void;
}

interface Open {
  reservations: number;
  reservedUsd: number;
  /** Spent, and not stored because the store failed. */
  unsavedUsd: number;
}

/** @see {@link BudgetLedger} */
export function createBudgetLedger(options: BudgetLedgerOptions): BudgetLedger {
  const { keyUsage } = options;
  const queue = createKeyedQueue();
  const open = new Map<string, Open>();

  const expect = async (
    keyId: string,
    budgets: Budgets,
    isReserving: boolean,
    fittingUsd = 0,
  ): Promise<void> => {
    const { reservedUsd, unsavedUsd } = open.get(keyId) ?? { reservedUsd: 0, unsavedUsd: 0 };
    const limits = [
      ["day", budgets.budgetUsdPerDay],
      ["month", budgets.budgetUsdPerMonth],
    ] as const;
    for (const [period, budgetUsd] of limits) {
      if (budgetUsd === undefined) continue;
      const at = new Date(options.now());
      const spentUsd = (await keyUsage.read(keyId, period, at)).costUsd + unsavedUsd;
      if (spentUsd >= budgetUsd) throw exceeded(period, budgetUsd, at);
      if (isReserving && spentUsd + reservedUsd >= budgetUsd) throw reservedElsewhere(budgetUsd, period);
      if (fittingUsd > 0 && spentUsd + reservedUsd + fittingUsd > budgetUsd)
        throw doesNotFit(budgetUsd, period);
    }
  };

  const settle = async (keyId: string, worstUsd: number, used: Parameters<Reservation["settle"]>[0]) => {
    const entry = open.get(keyId);
    if (entry === undefined) return;
    try {
      if (used !== undefined) await keyUsage.add(keyId, used.usage, used.costUsd, new Date(options.now()));
    } catch (error) {
      const costUsd = used?.costUsd ?? 0;
      entry.unsavedUsd += costUsd;
      options.onLost(keyId, costUsd, error);
    }
    entry.reservations -= 1;
    // Sums of fractions leave a residue.
    entry.reservedUsd = entry.reservations === 0 ? 0 : entry.reservedUsd - worstUsd;
    if (entry.reservations === 0 && entry.unsavedUsd === 0) open.delete(keyId);
  };

  return {
    expectBudget: (keyId, budgets) => expect(keyId, budgets, false),
    reserve: (keyId, budgets, worstUsd, mustFit = false) =>
      queue.run(keyId, async () => {
        await expect(keyId, budgets, true, mustFit ? worstUsd : 0);
        const entry = open.get(keyId) ?? { reservations: 0, reservedUsd: 0, unsavedUsd: 0 };
        entry.reservations += 1;
        entry.reservedUsd += worstUsd;
        open.set(keyId, entry);
        return { settle: (used) => queue.run(keyId, () => settle(keyId, worstUsd, used)) };
      }),
  };
}

function exceeded(period: Period, budgetUsd: number, at: Date): ApiError {
  const seconds = Math.ceil((endOf(period, at).getTime() - at.getTime()) / 1000);
  const message = `This key has used up its budget of ${budgetUsd} USD a ${period}.`;
  return new ApiError(402, "insufficient_quota", message, {
    code: "budget_exceeded",
    headers: { "retry-after": String(seconds) },
  });
}

function doesNotFit(budgetUsd: number, period: Period): ApiError {
  const message = `This recording may be longer than what is left of this key's budget of ${budgetUsd} USD a ${period} pays: send it as MP3, Ogg or usual WAV.`;
  return new ApiError(402, "insufficient_quota", message, { code: "budget_exceeded" });
}

function reservedElsewhere(budgetUsd: number, period: Period): ApiError {
  const message = `The rest of this key's budget of ${budgetUsd} USD a ${period} is reserved by its running requests.`;
  return new ApiError(429, "rate_limit_error", message, {
    code: "budget_reserved",
    headers: { "retry-after": "1" },
  });
}
