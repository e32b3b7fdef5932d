import {
  formatCost,
  formatCount,
  formatDate,
  formatDecimal,
  formatPrice,
  formatUsd,
  translate,
} from "../words/translate.ts";
import type { KnownPrice } from "./gateway.ts";
import type { UsageRow, BudgetState } from "./spending.ts";

/** The longest first cell of a table in characters. Discord does not align wider tables. */
const maxNameChars = 26;

/** A Markdown table of today and of the month so far. `days` are those of the month. */
export function summaryTable(days: readonly UsageGroup[], today: string): string {
  const month = sumUsage(days);
  const day = sumUsage(days.filter(({ key }) => key === today));
  const lines = (Object.keys(summaryLines) as (keyof typeof summaryLines)[]).map(
    (name) => [translate(`usage.${name}`), summaryLines[name](day), summaryLines[name](month)] as const,
  );
  return toTable(["", translate("usage.today"), translate("usage.month")], lines);
}

/** Lists what was used with one line each, for example "Calls: 12". */
export function usageLines(rows: readonly UsageRow[]): string[] {
  const sum = sumUsage(rows);
  return (Object.keys(summaryLines) as (keyof typeof summaryLines)[]).map(
    (name) => `${translate(`usage.${name}`)}: ${summaryLines[name](sum)}`,
  );
}

/** The cells of a sum, in the order of the tables' columns. */
const summaryLines = {
  calls: (sum: UsageSum) => formatCount(sum.calls),
  tokens: tokensOf,
  pictures: (sum: UsageSum) => formatCount(sum.images),
  "audio-minutes": (sum: UsageSum) => toMinutesText(sum.audioSeconds),
  cost: costOf,
} as const;

/** A Markdown table of groups, with a line for all others and the sum. */
export function usageTable(usage: {
  readonly by: UsageDimension;
  readonly top: readonly UsageGroup[];
  readonly others: readonly UsageGroup[];
  readonly names: ReadonlyMap<string, string>;
}): string {
  const { by, top, others, names } = usage;
  const toLine = (label: string, sum: UsageSum) => [
    label,
    ...Object.values(summaryLines).map((toText) => toText(sum)),
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

/** Explains the marks in a table. It is empty if the table has no marks. */
export function footnotes(rows: readonly UsageSum[]): string[] {
  const { estimatedCalls, unpricedCalls } = sumUsage(rows);
  return [
    ...(estimatedCalls === 0 ? [] : [`~ ${translate("usage.estimated", { count: estimatedCalls })}`]),
    ...(unpricedCalls === 0 ? [] : [translate("usage.unpriced", { count: unpricedCalls })]),
  ];
}

/** Lists what is left of budgets with one item each. */
export function budgetLines(budgets: readonly BudgetState[]): string[] {
  if (budgets.length === 0) return [translate("budget.none")];
  return budgets.map(({ scope, period, budgetUsd, spentUsd, isEstimated, renewsAt }) => {
    const left = formatCost(Math.max(0, budgetUsd - spentUsd), isEstimated);
    const time = new Date(renewsAt).toISOString().slice(11, 16);
    const values = { left, budget: formatUsd(budgetUsd), time };
    const line =
      period === "day"
        ? translate(`budget.${scope.kind}.day`, values)
        : translate(`budget.${scope.kind}.month`, { ...values, date: formatDate(renewsAt) });
    return `- ${line}`;
  });
}

function tokensOf({ promptTokens, completionTokens }: UsageSum): string {
  return formatCount(promptTokens + completionTokens);
}

function costOf({ costUsd, estimatedCalls }: UsageSum): string {
  return formatCost(costUsd, estimatedCalls > 0);
}

/** The name if it is known, or else the id. */
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

type Names = ReadonlyMap<string, string>;

/** The columns of the CSV file by their heads. */
const columns: Readonly<Record<string, (row: UsageRow, names: Names) => string | number>> = {
  day: (row) => row.day,
  person_id: (row) => row.personId,
  person: (row, names) => names.get(row.personId) ?? "",
  channel_id: (row) => row.channel ?? "",
  channel: (row, names) => names.get(row.channel ?? "") ?? "",
  model: (row) => row.model,
  operation: (row) => row.operation,
  calls: (row) => row.calls,
  prompt_tokens: (row) => row.promptTokens,
  completion_tokens: (row) => row.completionTokens,
  pictures: (row) => row.images,
  audio_seconds: (row) => row.audioSeconds,
  cost_usd: (row) => row.costUsd,
  estimated_calls: (row) => row.estimatedCalls,
  unpriced_calls: (row) => row.unpricedCalls,
};

/**
 * Writes usage rows as CSV (RFC 4180, UTF-8 with a byte order mark for spreadsheets), by day and person, in
 * pieces. A cell that a spreadsheet would take for a formula gets an apostrophe. `names` are those of ids.
 */
export function* toUsageCsv(rows: readonly UsageRow[], names: Names): Generator<string> {
  yield `\uFEFF${Object.keys(columns).join(",")}\r\n`;
  const toLine = (row: UsageRow): string =>
    `${Object.values(columns)
      .map((cellOf) => toCell(cellOf(row, names)))
      .join(",")}\r\n`;
  const days = Map.groupBy(rows, ({ day }) => day);
  for (const day of [...days.keys()].toSorted()) {
    const people = Map.groupBy(days.get(day)!, ({ personId }) => personId);
    for (const person of [...people.keys()].toSorted()) yield people.get(person)!.map(toLine).join("");
  }
}

/** Protects against formulas in spreadsheets. @see https://owasp.org/www-community/attacks/CSV_Injection */
function toCell(value: string | number): string {
  const text = typeof value === "number" ? toPlainNumber(value) : value;
  const harmless = typeof value === "string" && /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Writes a number without an exponent, which some spreadsheets take for text. */
function toPlainNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, "");
}

const tenths = { least: 1, most: 1 };

/** A duration such as `under 0.1 s`, `0.8 s`, `12 s` or `3 min 20 s`. */
export function toSecondsText(ms: number): string {
  if (ms < 95) return translate("time.under", { seconds: formatDecimal(0.1, tenths) });
  if (ms < 9950) return `${formatDecimal(ms / 1000, tenths)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** The minutes of a recording, for example `0.4` or `12`. */
export function toMinutesText(seconds: number): string {
  const minutes = seconds / 60;
  if (minutes === 0) return "0";
  return minutes < 9.95 ? formatDecimal(Math.max(0.1, minutes), { least: 0, most: 1 }) : formatCount(minutes);
}

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

/** Adds up rows or groups. */
export function sumUsage(rows: readonly UsageSum[]): UsageSum {
  const sum = noUsage();
  for (const row of rows) add(sum, row);
  return sum;
}

/** Usage rows that are grouped some at a time. */
export interface UsageGroups {
  add(rows: readonly UsageRow[]): void;
  /** Days in order. Others by cost and then by calls, the highest first. */
  sorted(): UsageGroup[];
}

/** Creates groups of no rows. */
export function createUsageGroups(by: UsageDimension): UsageGroups {
  const groups = new Map<string, MutableSum>();
  return {
    add(rows) {
      for (const row of rows) {
        const key = keyOf(row, by);
        const sum = groups.get(key) ?? noUsage();
        groups.set(key, sum);
        add(sum, row);
      }
    },
    sorted() {
      const all = [...groups].map(([key, sum]) => ({ key, ...sum }));
      return by === "day"
        ? all.sort((a, b) => (a.key < b.key ? -1 : 1))
        : all.sort((a, b) => b.costUsd - a.costUsd || b.calls - a.calls || (a.key < b.key ? -1 : 1));
    },
  };
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

type MutableSum = { -readonly [name in keyof UsageSum]: UsageSum[name] };

function add(sum: MutableSum, row: UsageSum): void {
  for (const name of sums) sum[name] += row[name];
}

function noUsage(): MutableSum {
  return Object.fromEntries(sums.map((name) => [name, 0])) as unknown as MutableSum;
}

/**
 * Describes a price in one line, for example "$0.10 in, $0.40 out per million tokens". It is empty where
 * there is none.
 */
export function describePrice({ price, isGuess }: KnownPrice): string {
  const { inputPerMillionUsd: input, outputPerMillionUsd: output, perAudioMinuteUsd, perImageUsd } = price;
  const known = [input, output, perAudioMinuteUsd, perImageUsd].filter((value) => value !== undefined);
  if (known.length === 0) return "";
  if (known.every((value) => value === 0)) return translate("price.free");
  const tokens = [
    ...(input === undefined ? [] : [translate("price.input", { usd: formatPrice(input) })]),
    ...(output === undefined ? [] : [translate("price.output", { usd: formatPrice(output) })]),
  ];
  const parts = [
    ...(tokens.length === 0 ? [] : [translate("price.tokens", { amounts: tokens.join(", ") })]),
    ...(perAudioMinuteUsd === undefined
      ? []
      : [translate("price.audio-minute", { usd: formatPrice(perAudioMinuteUsd) })]),
    ...(perImageUsd === undefined || perImageUsd === 0
      ? []
      : [translate("price.image", { usd: formatPrice(perImageUsd) })]),
  ].join("; ");
  return isGuess ? translate("price.about", { price: parts }) : parts;
}
