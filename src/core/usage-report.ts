import type { UsageRow } from "./spending.ts";

/** The amounts of a usage row that can be added up. */
const sums = [
  "calls",
  "promptTokens",
  "completionTokens",
  "images",
  "audioSeconds",
  "costUsd",
  "estimatedCalls",
  "unpricedCalls",
  "goodRatings",
  "badRatings",
] as const;

/** Sums of usage rows, with amounts as in {@link UsageRow}. */
export type UsageSum = Pick<UsageRow, (typeof sums)[number]>;

/** The dimensions by which usage can be grouped. */
export const usageDimensions = ["person", "channel", "model", "operation", "day"] as const;
export type UsageDimension = (typeof usageDimensions)[number];

/** Usage with one value of a dimension. `key` is its id, or empty for direct messages and the page. */
export interface UsageGroup extends UsageSum {
  readonly key: string;
}

/** The sum of no rows. */
export const noUsage = toSum(() => 0);

/** Adds up rows or groups. */
export function sumUsage(rows: readonly UsageSum[]): UsageSum {
  return rows.reduce((sum, row) => add(sum, row), noUsage);
}

/** Groups rows. Days are in order. Others come by cost and then by calls, the highest first. */
export function groupUsage(rows: readonly UsageRow[], by: UsageDimension): UsageGroup[] {
  const groups = new Map<string, UsageSum>();
  for (const row of rows) {
    const key = keyOf(row, by);
    groups.set(key, add(groups.get(key) ?? noUsage, row));
  }
  const all = [...groups].map(([key, sum]) => ({ key, ...sum }));
  return by === "day"
    ? all.sort((a, b) => (a.key < b.key ? -1 : 1))
    : all.sort((a, b) => b.costUsd - a.costUsd || b.calls - a.calls || (a.key < b.key ? -1 : 1));
}

function keyOf(row: UsageRow, by: UsageDimension): string {
  switch (by) {
    case "person":
      return row.personId;
    case "channel":
      return row.channel ?? "";
    case "model":
    case "operation":
    case "day":
      return row[by];
  }
}

function add(a: UsageSum, b: UsageSum): UsageSum {
  return toSum((name) => a[name] + b[name]);
}

function toSum(amountOf: (name: keyof UsageSum) => number): UsageSum {
  return Object.fromEntries(sums.map((name) => [name, amountOf(name)])) as unknown as UsageSum;
}
