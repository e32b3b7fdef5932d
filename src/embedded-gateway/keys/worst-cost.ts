import type { ModelOperation } from "../../core/gateway.ts";
import { type BilledAmounts, costOf, type ModelPrice } from "../../core/model-price.ts";
import { ApiError, clip } from "../api-error.ts";
import type { Target } from "../router.ts";

/**
 * The most that a request can cost at any of its targets, in USD.
 * @throws ApiError 403 `model_without_price` when the settings have no price of a target for the operation
 */
export function worstCostOf(
  operation: ModelOperation,
  targets: readonly Target[],
  most: BilledAmounts,
): number {
  let worstUsd = 0;
  for (const { publicId, model } of targets) {
    const prices = model?.prices ?? {};
    if (!isPriced(operation, prices)) throw withoutPrice(publicId);
    worstUsd = Math.max(worstUsd, costOf(prices, most) ?? 0);
  }
  return worstUsd;
}

/** Whether every amount that the operation is billed by has a price. A free model has the price 0. */
function isPriced(operation: ModelOperation, prices: ModelPrice): boolean {
  const hasTokens = prices.inputPerMillionUsd !== undefined && prices.outputPerMillionUsd !== undefined;
  if (operation === "image") return prices.perImageUsd !== undefined || hasTokens;
  if (operation === "transcription") return prices.perAudioMinuteUsd !== undefined || hasTokens;
  return hasTokens;
}

function withoutPrice(id: string): ApiError {
  const message = `The model '${clip(id)}' has no price in the gateway's settings, which a key with a budget needs.`;
  return new ApiError(403, "permission_error", message, { param: "model", code: "model_without_price" });
}
