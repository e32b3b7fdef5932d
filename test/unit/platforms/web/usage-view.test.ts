import { expect, test } from "vitest";
import type { ReceiptCall } from "../../../../src/core/receipt.ts";
import { toUsageView } from "../../../../src/platforms/web/items.ts";

const callOf = (usage?: ReceiptCall["usage"]): ReceiptCall => ({
  operation: "chat",
  asked: "m",
  ...(usage === undefined ? {} : { usage }),
});
const viewOf = (...calls: readonly ReceiptCall[]) => toUsageView(calls);

test("an answer's usage is the sum of its calls", () => {
  const heard = callOf({ audioSeconds: 60, costUsd: 0.01, isEstimated: false });
  const answered = callOf({ promptTokens: 1000, completionTokens: 20, costUsd: 0.002, isEstimated: true });
  expect(viewOf(heard, answered)).toEqual({ tokens: 1020, costUsd: 0.012, isEstimated: true });
  expect(viewOf(callOf({ completionTokens: 5, isEstimated: false }))).toEqual({ tokens: 5 });
});

test("what has no price makes the cost partial, and what is not known is not shown", () => {
  const free = callOf({ promptTokens: 1, isEstimated: false });
  const priced = callOf({ promptTokens: 1, costUsd: 1, isEstimated: false });
  expect(viewOf(free, priced)).toEqual({ tokens: 2, costUsd: 1, isPartial: true });
  expect(viewOf(callOf())).toBeUndefined();
  expect(viewOf()).toBeUndefined();
});
