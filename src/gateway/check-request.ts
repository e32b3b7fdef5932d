import { ParleyError } from "../core/errors.ts";
import type { ModelOperation } from "../core/gateway.ts";

/** A limit of the specification: whether the request keeps it, its parameter, and what that must be. */
export type RequestRule = readonly [isKept: boolean, parameter: string, rule: string];

/**
 * Checks a request before anything is sent.
 * @throws ParleyError `gateway-bad-request` for the first rule that is not kept
 */
export function checkRequest(operation: ModelOperation, model: string, rules: readonly RequestRule[]): void {
  const all: readonly RequestRule[] = [[model !== "", "model", "the id of a model"], ...rules];
  const broken = all.find(([isKept]) => !isKept);
  if (broken === undefined) return;
  const [, parameter, rule] = broken;
  throw new ParleyError("gateway-bad-request", `${operation} request: ${parameter} must be ${rule}`, {
    detail: { model, parameter, gatewayMessage: rule },
  });
}
