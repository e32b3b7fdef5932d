import uPlot from "uplot";
import { byId, number, word } from "./words.js";

/** A line of a plot. Its colour is a CSS property. @typedef {{ label: string, color: string }} Line */

/** @typedef {{ plot: uPlot, span: [number, number], names: string }} Drawn */
/** @type {Map<string, Drawn>} */
const plots = new Map();
const height = 180;

/**
 * Draws lines over time into an element, or changes what is drawn there.
 * @param {string} id
 * @param {readonly Line[]} lines
 * @param {readonly (readonly (number | null)[])[]} data times in Unix seconds, then the values of each line
 * @param {{ from: number, to: number, format?: (value: number) => string, isDaily?: boolean }} options
 */
export function draw(id, lines, data, { from, to, format = number, isDaily = false }) {
  const place = byId(id);
  const say = (/** @type {number | null | undefined} */ value) =>
    value === null || value === undefined ? "–" : format(value);
  // People who do not see it get the latest values. The tables and /admin/data have the rest.
  const latest = lines.map(({ label }, index) => `${label}: ${say(data[index + 1]?.at(-1))}`);
  place.setAttribute("aria-label", latest.join(", "));
  const names = lines.map(({ label }) => label).join("\n");
  let known = plots.get(id);
  // Other models are other lines.
  if (known !== undefined && known.names !== names) {
    known.plot.destroy();
    known = undefined;
  }
  if (known !== undefined) {
    known.span = [from, to];
    known.plot.setData(/** @type {uPlot.AlignedData} */ (/** @type {unknown} */ (data)));
    return;
  }
  // A canvas takes no `light-dark()`, so the colour is read where it is in use.
  const color = (/** @type {string} */ name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    place.append(probe);
    const value = getComputedStyle(probe).color;
    probe.remove();
    return value;
  };
  const line = { stroke: color("--line"), width: 1 };
  const axis = { stroke: color("--ink"), grid: line, ticks: line };
  /** @type {Drawn} */
  const drawn = { names, span: [from, to], plot: /** @type {uPlot} */ (/** @type {unknown} */ (undefined)) };
  drawn.plot = new uPlot(
    {
      width: place.clientWidth,
      height,
      scales: {
        x: { time: true, range: () => drawn.span },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.1 : 1] },
      },
      series: [
        { label: word("dashboard.when"), value: isDaily ? "{YYYY}-{MM}-{DD}" : "{HH}:{mm}" },
        ...lines.map(({ label, color: name }) => ({
          label,
          stroke: color(name),
          width: 2,
          points: { show: (data[0]?.length ?? 0) < 40 },
          spanGaps: true,
          value: (/** @type {uPlot} */ _, /** @type {number | null} */ value) => say(value),
        })),
      ],
      axes: [
        { ...axis, values: isDaily ? "{MM}-{DD}" : "{HH}:{mm}" },
        { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => format(tick)) },
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

/** Draws everything anew, after a change of size or of the colour scheme. */
export function forgetPlots() {
  for (const { plot } of plots.values()) plot.destroy();
  plots.clear();
}
