import uPlot from "uplot";
import { byId } from "./dom.js";

/** A line of a plot; its colour is a custom property of the style sheet. @typedef {{ label: string, color: string }} Line */

/** @typedef {{ plot: uPlot, span: [number, number] }} Drawn */
/** @type {Map<string, Drawn>} */
const plots = new Map();
const height = 180;

/**
 * Draws lines over time into an element, or changes what is drawn there.
 * @param {string} id
 * @param {readonly Line[]} lines
 * @param {readonly (readonly (number | null)[])[]} data times in Unix seconds, then the values of each line
 * @param {{ from: number, to: number, unit?: string, isDaily?: boolean }} options the times at both ends
 */
export function draw(id, lines, data, { from, to, unit = "", isDaily = false }) {
  const place = byId(id);
  const latest = lines.map(({ label }, index) => `${label} ${format(data[index + 1]?.at(-1), unit)}`);
  // For people who do not see it: the latest values; the tables and /admin/data have the rest.
  place.setAttribute("aria-label", `Now: ${latest.join(", ")}`);
  const known = plots.get(id);
  if (known !== undefined) {
    known.span = [from, to];
    known.plot.setData(/** @type {uPlot.AlignedData} */ (/** @type {unknown} */ (data)));
    return;
  }
  const color = (/** @type {string} */ name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const line = { stroke: color("--line"), width: 1 };
  const axis = { stroke: color("--text"), grid: line, ticks: line };
  /** @type {Drawn} */
  const drawn = { span: [from, to], plot: /** @type {uPlot} */ (/** @type {unknown} */ (undefined)) };
  drawn.plot = new uPlot(
    {
      width: place.clientWidth,
      height,
      scales: {
        x: { time: true, range: () => drawn.span },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      series: [
        { label: isDaily ? "Day" : "Time", ...(isDaily ? { value: "{YYYY}-{MM}-{DD}" } : {}) },
        ...lines.map(({ label, color: name }) => ({
          label,
          stroke: color(name),
          width: 2,
          points: { show: (data[0]?.length ?? 0) < 40 },
          spanGaps: true,
          value: (/** @type {uPlot} */ _, /** @type {number | null} */ value) => format(value, unit),
        })),
      ],
      axes: [
        { ...axis, values: isDaily ? "{MM}-{DD}" : "{HH}:{mm}" },
        { ...axis, size: 55, values: (_, ticks) => ticks.map((tick) => format(tick, "")) },
      ],
      // Days are those of UTC.
      ...(isDaily
        ? { tzDate: (/** @type {number} */ time) => uPlot.tzDate(new Date(time * 1000), "UTC") }
        : {}),
    },
    /** @type {uPlot.AlignedData} */ (/** @type {unknown} */ (data)),
    place,
  );
  plots.set(id, drawn);
}

/** Draws everything anew: after a change of size or of the colour scheme. */
export function forgetPlots() {
  for (const { plot } of plots.values()) plot.destroy();
  plots.clear();
}

/** @param {number | null | undefined} value @param {string} unit */
function format(value, unit) {
  if (value === null || value === undefined) return "–";
  const rounded = Number.isInteger(value)
    ? String(value)
    : value < 0.01
      ? value.toPrecision(2)
      : value.toFixed(2);
  return unit === "" ? rounded : `${rounded} ${unit}`;
}
