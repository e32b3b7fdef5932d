import type { ModelOperation } from "../core/gateway.ts";
import { freeCharge, type Charge, type WorstCase } from "./charge.ts";
import type { Caller, Target } from "./router.ts";

/** Permissions and budget of one request's caller. */
export interface Access extends Caller {
  /** What the caller's share of memory counts for; the same for all keys without restriction. */
  readonly keyId: string;
  /** Whether the caller's key has restrictions. Its requests keep only the fields that cannot widen them. */
  readonly isLimited: boolean;
  /**
   * Reserves the cost of a request before anything is sent. `targets` is empty for the sandbox, which is free.
   * @throws ApiError 402 (budget used up), 403 (a model without price), 429 (the budget is reserved by other requests)
   */
  reserve(operation: ModelOperation, targets: readonly Target[], worst: WorstCase): Promise<Charge>;
  /** The request has ended. Called once. */
  release(): void;
}

/** Access without restriction: with the gateway's own keys, or where no key is needed. */
export const fullAccess: Access = {
  keyId: "",
  isLimited: false,
  sees: () => true,
  expectModel: () => {},
  allowsTarget: () => true,
  reserve: async () => freeCharge,
  release: () => {},
};
