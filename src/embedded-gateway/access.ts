import type { ModelOperation } from "../core/gateway.ts";
import type { Target } from "./router.ts";
import type { UpstreamUsage } from "./upstreams/upstream-usage.ts";

/** Permissions of one request's caller, and where its usage is recorded. */
export interface Access {
  /** @throws ApiError 403 when the caller's key does not allow the model */
  expectModel(model: string): void;
  /** Whether the model list shows the model to the caller. */
  sees(model: string): boolean;
  /** `target` is `undefined` for the sandbox, which is free. Contract: must not throw. */
  onUsage(operation: ModelOperation, target: Target | undefined, usage: UpstreamUsage): void;
}

/** Access without restriction: with the gateway's own keys, or where no key is needed. */
export const fullAccess: Access = {
  expectModel: () => {},
  sees: () => true,
  onUsage: () => {},
};
