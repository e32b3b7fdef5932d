import type { BilledAmounts } from "../core/model-price.ts";
import type { Target } from "./router.ts";
import type { UpstreamUsage } from "./upstreams/upstream-usage.ts";

/** The amounts that a request may cost, known before it is sent. */
export interface WorstCase {
  /** The most that it can use. It is reserved. */
  readonly most: BilledAmounts;
  /** Charged when the client leaves after the request was sent and before any of the answer was forwarded. */
  readonly whenLeft: BilledAmounts;
  /** Charged when the upstream breaks off before any of the answer was forwarded. */
  readonly whenBroken: BilledAmounts;
  /**
   * Whether all of `most` must be within the budget. Otherwise a request may pass it by its own reserve: most cost far
   * less.
   */
  readonly mustFit?: boolean;
}

/** The cost of one request, from the moment it was reserved. Contract: no member throws. */
export interface Charge {
  /** The request is sent to a target: from now on it costs `whenLeft`, unless something else is recorded. */
  begin(target: Target): void;
  /** The attempt failed. `free`: it was never sent, or refused; `broken`: it may have been billed. */
  fail(how: "free" | "broken"): void;
  /** Records the usage of the answer. Later calls are ignored. `target` is `undefined` for the sandbox. */
  settle(target: Target | undefined, usage: UpstreamUsage): void;
  /** The request has ended: what is reserved and was not used is freed. Called on every path. */
  end(): void;
}

/** A charge of a caller without a budget. */
export const freeCharge: Charge = { begin: () => {}, fail: () => {}, settle: () => {}, end: () => {} };

/**
 * A charge that calls `record` exactly once, at its end: with the usage of the answer, with the amounts of an aborted
 * request, or with `undefined` when nothing was used.
 */
export function createCharge(
  worst: WorstCase,
  record: (target: Target | undefined, usage: UpstreamUsage | undefined) => void,
): Charge {
  let due: { readonly target: Target | undefined; readonly usage: UpstreamUsage } | undefined;
  let isSettled = false;
  let hasEnded = false;
  return {
    begin: (target) => {
      if (!isSettled) due = { target, usage: worst.whenLeft };
    },
    fail: (how) => {
      if (isSettled) return;
      due = how === "free" || due === undefined ? undefined : { ...due, usage: worst.whenBroken };
    },
    settle: (target, usage) => {
      if (isSettled) return;
      isSettled = true;
      due = { target, usage };
    },
    end: () => {
      if (hasEnded) return;
      hasEnded = true;
      record(due?.target, due?.usage);
    },
  };
}
