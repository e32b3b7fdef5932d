/** The 0.5 quantile. */
function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Quantile with linear interpolation. `share` from 0 to 1. NaN for no values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** The target of a figure: Parley's value relative to the tutorial bot's. */
export type Target =
  | { readonly kind: "at-most-ratio"; readonly ratio: number }
  | { readonly kind: "at-most-more"; readonly by: number }
  | { readonly kind: "none" };

/** One row of the result: the values of all runs. */
export interface Figure {
  readonly name: string;
  readonly unit: "ms" | "MB";
  readonly target: Target;
  readonly parley: number[];
  readonly tutorial: number[];
}

/** The figures as an aligned text table: median, range, ratio and whether the target is met. */
export function toTable(figures: readonly Figure[]): string {
  const head = ["", "Parley", "tutorial bot", "ratio", "target", ""];
  const rows = figures.map((figure) => {
    const { parley, tutorial, unit, target } = figure;
    const parleyMedian = median(parley);
    const tutorialMedian = median(tutorial);
    return [
      figure.name,
      toCell(parley, unit),
      toCell(tutorial, unit),
      (parleyMedian / tutorialMedian).toFixed(2),
      targetText(target, unit),
      verdict(parleyMedian, tutorialMedian, target),
    ];
  });
  const table = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

function toCell(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  const digits = median(values) < 20 ? 2 : 0;
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  return values.length === 1 ? `${middle} ${unit}` : `${middle} ${unit} (${low}–${high})`;
}

function targetText(target: Target, unit: string): string {
  if (target.kind === "none") return "";
  return target.kind === "at-most-ratio" ? `≤ ${target.ratio.toFixed(2)} ×` : `≤ + ${target.by} ${unit}`;
}

function verdict(parley: number, tutorial: number, target: Target): string {
  if (target.kind === "none" || Number.isNaN(parley) || Number.isNaN(tutorial)) return "";
  const limit = target.kind === "at-most-ratio" ? tutorial * target.ratio : tutorial + target.by;
  return parley <= limit ? "met" : "NOT met";
}
