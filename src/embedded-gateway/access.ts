import type { Operation } from "./models.ts";
import type { Target } from "./router.ts";
import type { Spent } from "./upstreams/spent.ts";

/** What the caller of one request may do, and where its use is written down. */
export interface Access {
  /** @throws ApiError 403 where the caller's key does not allow the model */
  expectModel(model: string): void;
  /** Whether the model list shows it to the caller. */
  sees(model: string): boolean;
  /** `target` is `undefined` for the sandbox, which costs nothing. Contract: must not throw. */
  onSpent(operation: Operation, target: Target | undefined, spent: Spent): void;
}

/** Who holds one of the gateway's own keys, or comes where none are needed. */
export const fullAccess: Access = {
  expectModel: () => {},
  sees: () => true,
  onSpent: () => {},
};
