import {
  byId,
  element,
  showFigures,
  table,
  bytes,
  duration,
  number,
  percent,
  seconds,
  time,
  usd,
  word,
  wordFor,
} from "./words.js";
import uPlot from "uplot";

/** @typedef {import("../dashboard-data.ts").DashboardData} Data */
/** @typedef {import("../../../core/usage.ts").UsageGroup} Sum */

const everyMs = 5000;
/** How many problems are seen at once. The others can be unfolded. */
const shownProblems = 4;
/** How many lines of a plot can be told apart. */
const maxLines = 4;
const maxLabelChars = 28;
const colors = ["--blue", "--orange", "--green", "--red"];
const height = 180;
/** @typedef {{ plot: uPlot, span: [number, number], names: string }} Drawn */
/** @type {Map<string, Drawn>} */
const plots = new Map();

/** @type {Data | undefined} */
let shown;

async function refresh() {
  if (document.hidden) return;
  try {
    const response = await fetch("/admin/data", { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error((await response.text()).trim());
    shown = /** @type {Data} */ (await response.json());
    show(shown);
  } catch (error) {
    const text =
      error instanceof TypeError
        ? word("dashboard.silent")
        : String(error instanceof Error ? error.message : error);
    showStatus("wrong", [element("p", { text })]);
    document.body.classList.add("is-old");
  }
}

/** @param {Data} data */
function show(data) {
  document.body.classList.remove("is-old");
  showFindings(data);
  byId("summary").textContent = word("dashboard.as-of", {
    time: time(data.time, data.time),
    version: data.version,
    up: duration(Date.parse(data.time) - Date.parse(data.startedAt)),
  });
  byId("to-page").hidden = !data.platforms.some(({ id }) => id === "web");
  showProblems(data);
  showSlow(data);
  showCosts(data);
  showFull(data);
  showNow(data);
  showParts(data);
  showPlots(data);
}

/** @param {Data} data */
function showFindings({ findings }) {
  const [worst] = findings;
  document.title = `${worst === undefined ? "" : `(${worst.text}) `}${word("dashboard.title")}`;
  if (worst === undefined) showStatus("well", [element("p", { text: word("dashboard.well") })]);
  else
    showStatus(
      worst.level,
      findings.map(({ text, remedy }) =>
        element("p", {}, [text, " ", element("span", { className: "remedy", text: remedy })]),
      ),
    );
}

/** A change is read out, so the same text stays. @param {string} level @param {HTMLElement[]} lines */
function showStatus(level, lines) {
  const status = byId("status");
  const text = lines.map((line) => line.textContent).join("");
  if (status.className === level && status.textContent === text) return;
  status.className = level;
  status.replaceChildren(...lines);
}

/** @param {Data} data */
function showProblems({ minutes, day, problems, time: now }) {
  const refused = Object.entries(day.refused).map(
    ([code, count]) => `${wordFor(`dashboard.refused.${code}`, code)}: ${number(count)}`,
  );
  showFigures(byId("failures"), [
    [word("dashboard.failed.hour"), rateOf(minutes)],
    [word("dashboard.failed.day"), rateOf([day])],
    [word("dashboard.refused"), refused.length === 0 ? number(0) : refused.join(", ")],
  ]);
  const groups = [...Map.groupBy(problems, ({ message, code }) => `${code} ${message}`).values()];
  const items = groups.map((group) => {
    const [problem] = group;
    if (problem === undefined) return element("li");
    const { time: at, level, message, code, reason, platform, requestId, remedy } = problem;
    const facts = [reason, code, platform, requestId].filter((text) => text !== undefined).join(" · ");
    return element("li", { className: level }, [
      element("p", {}, [
        element("time", { text: time(at, now) }),
        " ",
        element("strong", { text: message }),
        ...(group.length > 1 ? [` × ${number(group.length)}`] : []),
      ]),
      ...(facts === "" ? [] : [element("p", { className: "quiet", text: facts })]),
      ...(remedy === undefined ? [] : [element("p", { className: "remedy", text: `→ ${remedy}` })]),
    ]);
  });
  const wasOpen = byId("problems").querySelector("details")?.open ?? false;
  const older = element("details", {}, [
    element("summary", { text: word("dashboard.problems.more") }),
    element("ul", { className: "problems" }, items.slice(shownProblems)),
  ]);
  older.toggleAttribute("open", wasOpen);
  byId("problems").replaceChildren(
    items.length === 0
      ? element("p", { text: word("dashboard.problems.none") })
      : element("ul", { className: "problems" }, items.slice(0, shownProblems)),
    ...(items.length > shownProblems ? [older] : []),
  );
}

/** @param {readonly Data["day"][]} parts */
function rateOf(parts) {
  const turns = parts.reduce((sum, part) => sum + part.turns, 0);
  const failed = parts.reduce((sum, part) => sum + part.failed, 0);
  if (turns === 0) return number(0);
  const of = word("dashboard.of", { used: number(failed), limit: number(turns) });
  return `${of} (${percent(failed / turns)})`;
}

/** @param {Data} data */
function showSlow({ day }) {
  byId("slow").replaceChildren(
    day.models.length === 0
      ? element("p", { text: word("dashboard.slow.none") })
      : table(
          word("dashboard.slow.table"),
          [
            word("dashboard.name"),
            word("dashboard.first-half"),
            word("dashboard.first-worst"),
            word("dashboard.whole-half"),
            word("dashboard.whole-worst"),
            word("dashboard.answers"),
            word("dashboard.failed-calls"),
          ],
          day.models.map((each) => [
            each.model,
            seconds(each.firstP50),
            seconds(each.firstP95),
            seconds(each.wholeP50),
            seconds(each.wholeP95),
            number(each.answers),
            number(each.failed),
          ]),
        ),
  );
}

/** @param {Data} data */
function showCosts({ usage, names, time: now }) {
  if (usage === undefined) {
    byId("costs").replaceChildren();
    byId("more-usage").replaceChildren();
    byId("usage").replaceChildren(element("p", { text: word("dashboard.store-unread") }));
    return;
  }
  const today = usage.days.find(({ key }) => key === now.slice(0, 10));
  const { total } = usage;
  showFigures(byId("costs"), [
    [word("dashboard.cost.today"), today === undefined ? usd(0) : costOf(today)],
    [word("dashboard.cost.month"), costOf(total)],
    [word("dashboard.cost.calls"), number(total.calls)],
    ...(total.unpricedCalls === 0
      ? []
      : /** @type {[string, string][]} */ ([[word("dashboard.cost.unpriced"), number(total.unpricedCalls)]])),
  ]);
  /**
   * @param {"people" | "models" | "places" | "platforms" | "operations" | "days"} by
   * @param {readonly Sum[]} sums
   */
  const tableOf = (by, sums) =>
    sums.length === 0 ? [] : [usageTable(word(`dashboard.by.${by}`), sums, names)];
  const how = { className: "quiet", text: word("dashboard.cost.estimated.how") };
  byId("usage").replaceChildren(
    ...(total.estimatedCalls === 0 ? [] : [element("p", how)]),
    ...tableOf("people", usage.people),
    ...tableOf("models", usage.models),
  );
  byId("more-usage").replaceChildren(
    ...tableOf("places", usage.places),
    ...tableOf("platforms", usage.platforms),
    ...tableOf("operations", usage.operations),
    ...tableOf("days", usage.days.toReversed()),
  );
}

/**
 * Leaves out unused columns.
 * @param {string} caption @param {readonly Sum[]} sums @param {Data["names"]} names
 */
function usageTable(caption, sums, names) {
  /** @type {[string, (sum: Sum) => string, (sum: Sum) => number][]} */
  const columns = [
    [word("dashboard.cost.column"), costOf, () => 1],
    [word("dashboard.calls"), (sum) => number(sum.calls), (sum) => sum.calls],
    [word("dashboard.tokens-in"), (sum) => number(sum.promptTokens), (sum) => sum.promptTokens],
    [word("dashboard.tokens-out"), (sum) => number(sum.completionTokens), (sum) => sum.completionTokens],
    [word("dashboard.pictures"), (sum) => number(sum.images), (sum) => sum.images],
    [word("dashboard.audio"), (sum) => duration(sum.audioSeconds * 1000), (sum) => sum.audioSeconds],
  ];
  const used = columns.filter(([, , amount]) => sums.some((sum) => amount(sum) > 0));
  return table(
    caption,
    [word("dashboard.name"), ...used.map(([title]) => title)],
    sums.map((sum) => [
      (Object.hasOwn(names, sum.key) && names[sum.key]) || sum.key,
      ...used.map(([, text]) => text(sum)),
    ]),
  );
}

/** @param {Pick<Sum, "estimatedCalls" | "costUsd">} sum */
function costOf({ estimatedCalls, costUsd }) {
  return `${estimatedCalls > 0 ? "~" : ""}${usd(costUsd)}`;
}

const amountOf = { usd, bytes, count: number };

/** @param {Data} data */
function showFull({ full }) {
  byId("full").replaceChildren(
    ...full.map(({ kind, name, used, isEstimated, limit, unit }) => {
      const text = amountOf[unit];
      const usedText = `${isEstimated === true ? "~" : ""}${text(used)}`;
      const label = `${word(`dashboard.full.${kind}`)}${name === undefined ? "" : ` (${name})`}`;
      if (limit === undefined)
        return element("li", {}, [
          element("span", { text: label }),
          element("span", { className: "number", text: usedText }),
        ]);
      const share = limit === 0 ? 1 : used / limit;
      const bar = /** @type {HTMLProgressElement} */ (element("progress"));
      bar.max = 1;
      bar.value = Math.min(1, share);
      bar.className = share >= 0.9 ? "wrong" : share >= 0.7 ? "warning" : "well";
      bar.setAttribute("aria-label", label);
      const amounts = word("dashboard.of", { used: usedText, limit: text(limit) });
      return element("li", {}, [
        element("span", { text: label }),
        bar,
        element("span", { className: "number", text: `${amounts} (${percent(share)})` }),
      ]);
    }),
  );
}

/** @param {Data} data */
function showNow({ load }) {
  showFigures(byId("now"), [
    [word("dashboard.running"), number(load.turns.running)],
    [word("dashboard.waiting"), number(load.turns.waiting)],
    [word("dashboard.calls-running"), number(load.gatewayCalls.running)],
  ]);
}

/** @param {Data} data */
function showParts({ parts, platforms, gateway, store, time: now }) {
  const rows = Object.entries(parts).map(([name, { status, problems = [], warnings = [] }]) => {
    const platform = platforms.find(({ id }) => id === name);
    const facts = [...problems, ...warnings];
    if (name === "gateway") facts.push(gateway.description);
    if (name === "store") facts.push(store.description);
    if (platform !== undefined) {
      const { connections, lastEventAt, reconnects, limited } = platform;
      if (connections.length > 1)
        facts.push(
          word("dashboard.of", {
            used: number(connections.filter(({ isReady }) => isReady).length),
            limit: number(connections.length),
          }),
        );
      facts.push(
        lastEventAt === undefined
          ? word("dashboard.no-event")
          : word("dashboard.last-event", { time: time(lastEventAt, now) }),
      );
      if (reconnects > 0) facts.push(word("dashboard.reconnects", { count: number(reconnects) }));
      if (limited > 0) facts.push(word("dashboard.limited", { count: number(limited) }));
    }
    const state = element("span", { className: `status ${status}`, text: word(`dashboard.state.${status}`) });
    return [name, state, facts.join("; ")];
  });
  const columns = [word("dashboard.part"), word("dashboard.state"), word("dashboard.more")];
  byId("parts").replaceChildren(table(word("dashboard.parts.table"), columns, rows, { isText: true }));
}

/** @param {Data} data */
function showPlots({ minutes, usage, time: now }) {
  const to = Date.parse(now) / 1000;
  const hour = { from: to - 3600, to };
  const times = minutes.map((minute) => minute.time);
  const counts = Map.groupBy(
    minutes.flatMap((minute) => minute.models),
    ({ model }) => model,
  );
  const models = [...counts.values()]
    .map((same) => ({
      model: same[0]?.model ?? "",
      answers: same.reduce((sum, { answers }) => sum + answers, 0),
    }))
    .sort((a, b) => b.answers - a.answers)
    .slice(0, maxLines)
    .map(({ model }) => model);
  const lines = models.map((model, index) => ({
    // The end of a long name tells more than its provider.
    label: model.length > maxLabelChars ? `…${model.slice(1 - maxLabelChars)}` : model,
    color: colors[index] ?? "--ink",
  }));
  for (const [id, figure] of /** @type {const} */ ([
    ["first-text-plot", "firstP50"],
    ["turn-plot", "wholeP50"],
  ])) {
    byId(id).parentElement?.toggleAttribute("hidden", models.length === 0);
    if (models.length === 0) continue;
    const values = models.map((name) =>
      minutes.map((minute) => minute.models.find(({ model }) => model === name)?.[figure] ?? null),
    );
    draw(id, lines, [times, ...values], { ...hour, format: seconds });
  }
  draw(
    "turns-plot",
    [
      { label: word("dashboard.answers"), color: "--blue" },
      { label: word("dashboard.failed"), color: "--red" },
    ],
    [times, minutes.map(({ turns }) => turns), minutes.map(({ failed }) => failed)],
    hour,
  );
  draw(
    "load-plot",
    [
      { label: word("dashboard.running"), color: "--blue" },
      { label: word("dashboard.waiting"), color: "--orange" },
      { label: word("dashboard.calls-running"), color: "--green" },
    ],
    [
      times,
      minutes.map(({ turnsRunning }) => turnsRunning),
      minutes.map(({ turnsWaiting }) => turnsWaiting),
      minutes.map(({ callsRunning }) => callsRunning),
    ],
    hour,
  );
  const days = usage?.days ?? [];
  draw(
    "cost-plot",
    [
      {
        label: word(
          days.some(({ estimatedCalls }) => estimatedCalls > 0)
            ? "dashboard.cost.column.estimated"
            : "dashboard.cost.column",
        ),
        color: "--blue",
      },
    ],
    [days.map(({ key }) => Date.parse(key) / 1000), days.map(({ costUsd }) => costUsd)],
    { from: to - 30 * 86_400, to, format: usd, isDaily: true },
  );
}

/** Draws everything anew, after a change of size or of the colour scheme. */
function drawAnew() {
  for (const { plot } of plots.values()) plot.destroy();
  plots.clear();
  if (shown !== undefined) showPlots(shown);
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawAnew();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
// The theme was changed on the page, in another tab.
addEventListener("storage", drawAnew);
document.addEventListener("visibilitychange", () => void refresh());
setInterval(() => void refresh(), everyMs);
await refresh();

/** A line of a plot. Its colour is a CSS property. @typedef {{ label: string, color: string }} Line */

/**
 * Returns the width of an axis in pixels, for which its widest label has room.
 * @param {uPlot} plot
 * @param {readonly string[] | null} labels
 * @param {number} index
 */
function widthOf({ ctx, axes }, labels, index) {
  const axis = axes[index];
  ctx.font = axis?.font?.[0] ?? ctx.font;
  const widest = Math.max(0, ...(labels ?? []).map((label) => ctx.measureText(label).width));
  return Math.max(64, Math.ceil(widest / devicePixelRatio) + (axis?.ticks?.size ?? 0) + (axis?.gap ?? 0));
}

/**
 * Draws lines over time into an element, or changes what is drawn there.
 * @param {string} id
 * @param {readonly Line[]} lines
 * @param {readonly (readonly (number | null)[])[]} data times in Unix seconds, then the values of each line
 * @param {{ from: number, to: number, format?: (value: number) => string, isDaily?: boolean }} options
 */
function draw(id, lines, data, { from, to, format = number, isDaily = false }) {
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
        { ...axis, size: widthOf, values: (_, ticks) => ticks.map((tick) => format(tick)) },
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
