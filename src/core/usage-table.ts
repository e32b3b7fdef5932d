import { counted, toCountText, toMinutesText, toUsdText } from "./amounts.ts";
import type { BudgetState, UsageRow } from "./spending.ts";
import { sumUsage, type UsageDimension, type UsageGroup, type UsageSum } from "./usage-report.ts";

/** Longest first cell of a table: wider tables are not aligned on Discord. */
const maxNameChars = 26;

/** Today beside the month so far, as a Markdown table. `rows`: of the month. */
export function summaryTable(rows: readonly UsageRow[], today: string): string {
  const month = sumUsage(rows);
  const day = sumUsage(rows.filter((row) => row.day === today));
  const lines = (Object.keys(summaryLines) as (keyof typeof summaryLines)[]).map(
    (label) => [label, summaryLines[label](day), summaryLines[label](month)] as const,
  );
  return toTable(["", "Today", "This month"], lines);
}

const summaryLines = {
  Calls: (sum: UsageSum) => toCountText(sum.calls),
  Tokens: tokensOf,
  Pictures: (sum: UsageSum) => toCountText(sum.images),
  "Audio minutes": (sum: UsageSum) => toMinutesText(sum.audioSeconds),
  Cost: costOf,
} as const;

const dimensionTitles: Readonly<Record<UsageDimension, string>> = {
  person: "Person",
  channel: "Channel",
  model: "Model",
  operation: "Operation",
  day: "Day",
};

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
  if (others.length > 0) lines.push(toLine(`${toCountText(others.length)} others`, sumUsage(others)));
  if (lines.length > 1) lines.push(toLine("All", sumUsage([...top, ...others])));
  return toTable([dimensionTitles[by], "Calls", "Tokens", "Pictures", "Audio min", "Cost"], lines);
}

/** What the marks in a table mean; empty where it has none. */
export function footnotes(rows: readonly UsageSum[]): string[] {
  const { estimatedCalls, unpricedCalls } = sumUsage(rows);
  return [
    ...(estimatedCalls === 0 ? [] : [`~ In part estimated: ${counted(estimatedCalls, "call")}.`]),
    ...(unpricedCalls === 0
      ? []
      : [
          `\\+ Without ${counted(unpricedCalls, "call")} of models whose price is not known (MODEL_PRICES sets it).`,
        ]),
  ];
}

const budgetNames: Readonly<Record<BudgetState["scope"]["kind"], string>> = {
  person: "Your budget",
  place: "The budget of this place",
  deployment: "The budget of everybody together",
};

/** What is left of budgets, a list item each. */
export function budgetLines(budgets: readonly BudgetState[]): string[] {
  if (budgets.length === 0) return ["No budget limits you."];
  return budgets.map(({ scope, budgetUsd, spentUsd, renewsAt }) => {
    const left = toUsdText(Math.max(0, budgetUsd - spentUsd));
    const time = new Date(renewsAt).toISOString().slice(11, 16);
    return `- ${budgetNames[scope.kind]} today: **${left}** left of ${toUsdText(budgetUsd)}; it renews at ${time} UTC.`;
  });
}

function tokensOf({ promptTokens, completionTokens }: UsageSum): string {
  return toCountText(promptTokens + completionTokens);
}

function costOf({ calls, costUsd, estimatedCalls, unpricedCalls }: UsageSum): string {
  if (calls > 0 && unpricedCalls === calls) return "unknown";
  return `${estimatedCalls > 0 ? "~" : ""}${toUsdText(costUsd)}${unpricedCalls > 0 ? "+" : ""}`;
}

/** A name that is known; an id is shown where none is. */
function labelOf(key: string, by: UsageDimension, names: ReadonlyMap<string, string>): string {
  if (key === "" && by === "channel") return "Direct messages, page";
  const label = (names.get(key) ?? key).replaceAll(/[|`*\s\\]+/g, " ").trim();
  return label.length <= maxNameChars ? label : `…${label.slice(1 - maxNameChars)}`;
}

function toTable(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const toRow = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) => (index === 0 ? "---" : "--:"));
  return [head, rule, ...lines].map(toRow).join("\n");
}
