import type { Receipt } from "../../core/receipt.ts";

/** What answers have used, all calls together. */
export interface UsageView {
  /** In prompts and answers. Absent: nothing that was used is measured in tokens. */
  readonly tokens?: number;
  /** Absent: no call has a known price. */
  readonly costUsd?: number;
  /** Whether some of it is estimated. */
  readonly isEstimated?: true;
  /** Whether there is more that is not in `costUsd`. */
  readonly isPartial?: true;
}

/** What one answer has used. `undefined`: nothing is known of it. */
export function toUsageView({ calls }: Receipt): UsageView | undefined {
  const usages = calls.flatMap(({ usage }) => usage ?? []);
  const tokens = usages.flatMap(({ promptTokens, completionTokens }) =>
    promptTokens === undefined && completionTokens === undefined
      ? []
      : [(promptTokens ?? 0) + (completionTokens ?? 0)],
  );
  const costs = usages.flatMap(({ costUsd }) => costUsd ?? []);
  if (tokens.length === 0 && costs.length === 0) return undefined;
  return {
    ...(tokens.length === 0 ? {} : { tokens: sum(tokens) }),
    ...(costs.length === 0 ? {} : { costUsd: sum(costs) }),
    ...(usages.some(({ isEstimated }) => isEstimated) ? { isEstimated: true } : {}),
    ...(costs.length > 0 && costs.length < calls.length ? { isPartial: true } : {}),
  };
}

/** The sum of several answers. */
export function sumUsage(usages: readonly UsageView[]): UsageView {
  const tokens = usages.flatMap((usage) => usage.tokens ?? []);
  const costs = usages.flatMap(({ costUsd }) => costUsd ?? []);
  const isPartial = costs.length > 0 && usages.some((one) => one.costUsd === undefined || one.isPartial);
  return {
    ...(tokens.length === 0 ? {} : { tokens: sum(tokens) }),
    ...(costs.length === 0 ? {} : { costUsd: sum(costs) }),
    ...(usages.some(({ isEstimated }) => isEstimated) ? { isEstimated: true } : {}),
    ...(isPartial ? { isPartial: true } : {}),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
