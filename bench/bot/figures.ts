import type { BotName } from "./bots.ts";

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** A quantile with linear interpolation. `share` is from 0 to 1. Without values it is NaN. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** What Parley's figure should be, alone or relative to the tutorial bot's. */
export type Aim =
  | { readonly kind: "at-most-ratio"; readonly ratio: number }
  | { readonly kind: "at-most-more"; readonly by: number }
  | { readonly kind: "at-most"; readonly value: number }
  | { readonly kind: "at-least-ratio"; readonly ratio: number };

/** A figure that is measured. */
export interface FigureName {
  /** Rows of one group stand together in the table. */
  readonly group: string;
  readonly name: string;
  readonly unit: "ms" | "s" | "MB" | "kB" | "/s" | "";
  /** It is `undefined` if there is no aim. */
  readonly aim?: Aim | undefined;
}

/** Records the value of one run for a figure. */
export type Note = (figure: FigureName, bot: BotName, value: number) => void;

/** One row of the result with the values of all runs. */
export interface Figure extends FigureName {
  readonly parley: number[];
  readonly tutorial: number[];
}

/** Collects the values of all runs in the order in which figures were first noted. */
export function createFigures(): { readonly note: Note; readonly all: () => readonly Figure[] } {
  const figures = new Map<string, Figure>();
  return {
    note(named, bot, value) {
      const key = `${named.group} ${named.name}`;
      const figure = figures.get(key) ?? { ...named, parley: [], tutorial: [] };
      figures.set(key, figure);
      figure[bot].push(value);
    },
    all() {
      const groups = Map.groupBy(figures.values(), ({ group }) => group);
      return [...groups.values()].flat();
    },
  };
}

/** Whether the median meets the aim. It is `undefined` without an aim or a value to compare with. */
function isMet({ parley, tutorial, aim }: Figure): boolean | undefined {
  const own = median(parley);
  const other = median(tutorial);
  if (aim === undefined || parley.length === 0) return undefined;
  if (aim.kind !== "at-most" && tutorial.length === 0) return undefined;
  // NaN means that nothing was measured, and meets no aim.
  switch (aim.kind) {
    case "at-most-ratio":
      return own <= other * aim.ratio;
    case "at-most-more":
      return own <= other + aim.by;
    case "at-most":
      return own <= aim.value;
    case "at-least-ratio":
      return own >= other * aim.ratio;
  }
}

/** The figures as an aligned text table with median, range, ratio and whether the aim is met. */
export function toTable(figures: readonly Figure[]): string {
  const head = ["", "Parley", "tutorial bot", "ratio", "aim", ""];
  const rows = figures.map((figure) => [
    `${figure.group}: ${figure.name}`,
    toCell(figure.parley, figure.unit),
    toCell(figure.tutorial, figure.unit),
    ratioText(figure),
    aimText(figure),
    verdict(figure),
  ]);
  const table = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...table.map((row) => (row[column] ?? "").length)));
  return table
    .map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** One line for each aim that is not met or could not be judged. */
export function listUnmet(figures: readonly Figure[]): string[] {
  return figures
    .filter((figure) => figure.aim !== undefined && isMet(figure) !== true)
    .map((figure) => {
      const { group, name, parley, unit } = figure;
      const what = isMet(figure) === false ? "NOT met" : "NOT judged, nothing to compare with";
      return `${what}: ${group}: ${name}: ${toCell(parley, unit)}, aim ${aimText(figure)}`;
    });
}

function toCell(values: readonly number[], unit: string): string {
  if (values.length === 0) return "–";
  const digits = unit === "" ? 0 : median(values) < 20 ? 2 : 0;
  const [low, middle, high] = [Math.min(...values), median(values), Math.max(...values)].map((value) =>
    value.toFixed(digits),
  );
  const withUnit = unit === "" || unit === "/s" ? `${middle}${unit}` : `${middle} ${unit}`;
  return values.length === 1 ? withUnit : `${withUnit} (${low}–${high})`;
}

function ratioText({ parley, tutorial }: Figure): string {
  const ratio = median(parley) / median(tutorial);
  return Number.isFinite(ratio) ? ratio.toFixed(2) : "";
}

function aimText({ aim, unit }: Figure): string {
  switch (aim?.kind) {
    case undefined:
      return "";
    case "at-most-ratio":
      return `≤ ${aim.ratio.toFixed(2)} ×`;
    case "at-most-more":
      return `≤ + ${aim.by} ${unit}`;
    case "at-most":
      return `≤ ${aim.value} ${unit}`.trimEnd();
    case "at-least-ratio":
      return `≥ ${aim.ratio.toFixed(2)} ×`;
  }
}

function verdict(figure: Figure): string {
  const met = isMet(figure);
  if (met === undefined) return "";
  return met ? "met" : "NOT met";
}
