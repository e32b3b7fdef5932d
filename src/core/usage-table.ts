import { toCountText, toMinutesText, toUsdText } from "./amounts.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import { sumUsage, type UsageDimension, type UsageGroup, type UsageSum } from "./usage-report.ts";
import { translate } from "../words/translate.ts";

/** Longest first cell of a table: wider tables are not aligned on Discord. */
const maxNameChars = 26;

/** Today beside the month so far, as a Markdown table. `rows`: of the month. */
export function summaryTable(rows: readonly UsageRow[], today: string): string {
  const month = sumUsage(rows);
  const day = sumUsage(rows.filter((row) => row.day === today));
  const lines = (Object.keys(summaryLines) as (keyof typeof summaryLines)[]).map(
    (name) => [translate(`usage.${name}`), summaryLines[name](day), summaryLines[name](month)] as const,
  );
  return toTable(["", translate("usage.today"), translate("usage.month")], lines);
}

/** What was used, a line each: "Calls: 12". */
export function usageLines(rows: readonly UsageRow[]): string[] {
  const sum = sumUsage(rows);
  return (Object.keys(summaryLines) as (keyof typeof summaryLines)[]).map(
    (name) => `${translate(`usage.${name}`)}: ${summaryLines[name](sum)}`,
  );
}

const summaryLines = {
  calls: (sum: UsageSum) => toCountText(sum.calls),
  tokens: tokensOf,
  pictures: (sum: UsageSum) => toCountText(sum.images),
  "audio-minutes": (sum: UsageSum) => toMinutesText(sum.audioSeconds),
  cost: costOf,
} as const;

/** Groups as a Markdown table; a line for all others, and the sum. */
export function usageTable(usage: {
  readonly by: UsageDimension;
  readonly top: readonly UsageGroup[];
  readonly others: readonly UsageGroup[];
  readonly names: ReadonlyMap<string, string>;
}): string {
  const { by, top, others, names } = usage;
  const toLine = (label: string, sum: UsageSum) => [
    label,
    toCountText(sum.calls),
    tokensOf(sum),
    toCountText(sum.images),
    toMinutesText(sum.audioSeconds),
    costOf(sum),
  ];
  const lines = top.map((group) => toLine(labelOf(group.key, by, names), group));
  if (others.length > 0)
    lines.push(toLine(translate("usage.others", { count: others.length }), sumUsage(others)));
  if (lines.length > 1) lines.push(toLine(translate("usage.all"), sumUsage([...top, ...others])));
  return toTable(
    [
      translate(`usage.by.${by}`),
      translate("usage.calls"),
      translate("usage.tokens"),
      translate("usage.pictures"),
      translate("usage.audio-min"),
      translate("usage.cost"),
    ],
    lines,
  );
}

/** What the marks in a table mean; empty where it has none. */
export function footnotes(rows: readonly UsageSum[]): string[] {
  const { estimatedCalls, unpricedCalls } = sumUsage(rows);
  return [
    ...(estimatedCalls === 0 ? [] : [`~ ${translate("usage.estimated", { count: estimatedCalls })}`]),
    ...(unpricedCalls === 0 ? [] : [`\\+ ${translate("usage.unpriced", { count: unpricedCalls })}`]),
  ];
}

/** What is left of budgets, a list item each. */
export function budgetLines(budgets: readonly BudgetState[]): string[] {
  if (budgets.length === 0) return [translate("budget.none")];
  return budgets.map(({ scope, budgetUsd, spentUsd, renewsAt }) => {
    const left = toUsdText(Math.max(0, budgetUsd - spentUsd));
    const time = new Date(renewsAt).toISOString().slice(11, 16);
    return `- ${translate(`budget.${scope.kind}`, { left, budget: toUsdText(budgetUsd), time })}`;
  });
}

function tokensOf({ promptTokens, completionTokens }: UsageSum): string {
  return toCountText(promptTokens + completionTokens);
}

function costOf({ calls, costUsd, estimatedCalls, unpricedCalls }: UsageSum): string {
  if (calls > 0 && unpricedCalls === calls) return translate("usage.cost.unknown");
  return `${estimatedCalls > 0 ? "~" : ""}${toUsdText(costUsd)}${unpricedCalls > 0 ? "+" : ""}`;
}

/** A name that is known; an id is shown where none is. */
function labelOf(key: string, by: UsageDimension, names: ReadonlyMap<string, string>): string {
  if (key === "" && by === "channel") return translate("usage.no-channel");
  const label = (names.get(key) ?? key).replaceAll(/[|`*\s\\]+/g, " ").trim();
  return label.length <= maxNameChars ? label : `…${label.slice(1 - maxNameChars)}`;
}

function toTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const toRow = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) => (index === 0 ? "---" : "--:"));
  return [head, rule, ...lines].map(toRow).join("\n");
}
