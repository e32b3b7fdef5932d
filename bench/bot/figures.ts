/** Middle value; of an even count the mean of the two in the middle. */
function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Value below which a share of the values lies, between neighbours in proportion. NaN of nothing. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** How a figure of Parley is judged against the other bot's. */
export type Aim =
  | { readonly kind: "at-most-ratio"; readonly ratio: number }
  | { readonly kind: "at-most-more"; readonly by: number }
  | { readonly kind: "none" };

/** One line of the result: the values of all runs, in one unit. */
export interface Figure {
  readonly name: string;
  readonly unit: "ms" | "MB";
  readonly aim: Aim;
  readonly parley: number[];
  readonly tutorial: number[];
}

/** The figures as an aligned table: medians with their range, ratio and whether the aim is met. */
export function toTable(figures: readonly Figure[]): string {
  const head = ["", "Parley", "tutorial bot", "ratio", "aim", ""];
  const rows = figures.map((figure) => {
    const { parley, tutorial, unit, aim } = figure;
    const mine = median(parley);
    const other = median(tutorial);
    return [
      figure.name,
      toCell(parley, unit),
      toCell(tutorial, unit),
      (mine / other).toFixed(2),
      aimWords(aim, unit),
      verdict(mine, other, aim),
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

function aimWords(aim: Aim, unit: string): string {
  if (aim.kind === "none") return "";
  return aim.kind === "at-most-ratio" ? `≤ ${aim.ratio.toFixed(2)} ×` : `≤ + ${aim.by} ${unit}`;
}

function verdict(mine: number, other: number, aim: Aim): string {
  if (aim.kind === "none" || Number.isNaN(mine) || Number.isNaN(other)) return "";
  const limit = aim.kind === "at-most-ratio" ? other * aim.ratio : other + aim.by;
  return mine <= limit ? "met" : "NOT met";
}
