import type { UsageRow } from "./spending.ts";

const header = [
  "day",
  "person_id",
  "person",
  "channel_id",
  "channel",
  "model",
  "operation",
  "calls",
  "prompt_tokens",
  "completion_tokens",
  "pictures",
  "audio_seconds",
  "cost_usd",
  "estimated_calls",
  "unpriced_calls",
];

/**
 * Usage rows as CSV (RFC 4180, UTF-8 with a byte order mark, for spreadsheets), by day and person. A cell that a
 * spreadsheet would take for a formula begins with an apostrophe. `names`: those that are known, by id.
 */
export function toUsageCsv(rows: readonly UsageRow[], names: ReadonlyMap<string, string>): string {
  const ordered = rows.toSorted((a, b) => compare(a.day, b.day) || compare(a.personId, b.personId));
  const lines = ordered.map((row) =>
    [
      row.day,
      row.personId,
      names.get(row.personId) ?? "",
      row.channel ?? "",
      row.channel === undefined ? "" : (names.get(row.channel) ?? ""),
      row.model,
      row.operation,
      row.calls,
      row.promptTokens,
      row.completionTokens,
      row.images,
      row.audioSeconds,
      row.costUsd,
      row.estimatedCalls,
      row.unpricedCalls,
    ].map(toCell),
  );
  return `\uFEFF${[header, ...lines].map((cells) => `${cells.join(",")}\r\n`).join("")}`;
}

/** @see https://owasp.org/www-community/attacks/CSV_Injection */
function toCell(value: string | number): string {
  const text = typeof value === "number" ? toPlainNumber(value) : value;
  const harmless = typeof value === "string" && /^\s*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Without an exponent, which some spreadsheets take for text. */
function toPlainNumber(value: number): string {
  return Number.isInteger(value) ? String(value) : value.toFixed(9).replace(/\.?0+$/, "");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
