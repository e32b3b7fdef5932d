import { byId, element, showFigures, table } from "./dom.js";
import { draw, forgetPlots } from "./plots.js";

/** @typedef {import("../dashboard-data.ts").DashboardData} Data */
/** @typedef {import("../../../core/usage-report.ts").UsageGroup} Sum */

const everyMs = 5000;
const statusWords = { ready: "ready", degraded: "degraded", "not-ready": "not ready" };

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
    const reason =
      error instanceof TypeError
        ? "Parley does not respond"
        : String(error instanceof Error ? error.message : error);
    byId("summary").textContent =
      `${reason}. What is below is of ${shown === undefined ? "no time yet" : time(shown.time)}; trying again.`;
    document.body.classList.add("is-old");
  }
}

/** @param {Data} data */
function show(data) {
  document.body.classList.remove("is-old");
  const up = duration(Date.parse(data.time) - Date.parse(data.startedAt));
  byId("summary").textContent =
    `${statusWords[data.status]}; version ${data.version} on Node ${data.node}, instance ${data.instance}, up ${up}, as of ${time(data.time)}`;
  document.title = `${data.status === "ready" ? "" : `(${statusWords[data.status]}) `}Parley dashboard`;
  showParts(data);
  showNow(data);
  showPlots(data);
  showUsage(data);
  showRefusals(data);
  showProblems(data);
}

/** @param {Data} data */
function showParts({ parts, platforms, gateway, store }) {
  const rows = Object.entries(parts).map(([name, { status, state, problems = [], warnings = [] }]) => {
    const platform = platforms.find(({ id }) => id === name);
    const facts = [...problems, ...warnings];
    if (name === "gateway") facts.push(gateway.description);
    if (name === "store")
      facts.push(store.description, ...(store.bytes === undefined ? [] : [bytes(store.bytes)]));
    if (platform !== undefined) {
      const { connections, lastEventAt, reconnects, limited } = platform;
      if (connections.length > 1)
        facts.push(
          `${connections.filter(({ isReady }) => isReady).length} of ${connections.length} connections`,
        );
      facts.push(
        lastEventAt === undefined
          ? "no event since the start"
          : `last event ${time(new Date(lastEventAt).toISOString())}`,
      );
      facts.push(`${reconnects} reconnects`, `${limited} calls refused as too many`);
    }
    const word =
      state === undefined || state === status ? statusWords[status] : `${statusWords[status]} (${state})`;
    return [name, element("span", { className: `status ${status}`, text: word }), facts.join("; ")];
  });
  byId("parts").replaceChildren(table("State of each part", ["Part", "State", "More"], rows));
}

/** @param {Data} data */
function showNow({ load, deliveryWaiting, store }) {
  const waiting = deliveryWaiting.map(
    ({ platform, method, urgency, count }) => `${count} ${platform} ${method} (${urgency})`,
  );
  showFigures(byId("now"), [
    ["Turns running", String(load.turns.running)],
    ["Turns waiting", String(load.turns.waiting)],
    ["Gateway calls running", String(load.gatewayCalls.running)],
    ["Gateway calls waiting", String(load.gatewayCalls.waiting)],
    ["Waiting for platforms' limits", waiting.length === 0 ? "0" : waiting.join(", ")],
    ["Writes of the store", `${store.commits} (${store.durableCommits} durable)`],
  ]);
}

/** @param {Data} data */
function showPlots({ series, minutes, usage, time: now }) {
  const to = Date.parse(now) / 1000;
  const hour = { from: to - 3600, to };
  draw(
    "load-plot",
    [
      { label: "turns running", color: "--blue" },
      { label: "turns waiting", color: "--orange" },
      { label: "calls running", color: "--green" },
      { label: "waiting for platforms", color: "--red" },
    ],
    [series.times, series.turnsRunning, series.turnsWaiting, series.callsRunning, series.deliveryWaiting],
    hour,
  );
  const times = minutes.map((minute) => minute.time);
  const lines = [
    { label: "median", color: "--blue" },
    { label: "p95", color: "--orange" },
  ];
  draw(
    "first-text-plot",
    lines,
    [times, minutes.map((each) => each.firstTextP50), minutes.map((each) => each.firstTextP95)],
    {
      ...hour,
      unit: "s",
    },
  );
  draw(
    "turn-plot",
    lines,
    [times, minutes.map((each) => each.turnP50), minutes.map((each) => each.turnP95)],
    { ...hour, unit: "s" },
  );
  const days = usage?.days ?? [];
  draw(
    "cost-plot",
    [{ label: "cost", color: "--blue" }],
    [days.map(({ key }) => Date.parse(key) / 1000), days.map(({ costUsd }) => costUsd)],
    { from: to - 30 * 86_400, to, unit: "USD", isDaily: true },
  );
}

/** @param {Data} data */
function showUsage({ usage, budgets }) {
  const { dayUsd, personDayUsd, spentTodayUsd } = budgets;
  const spent = spentTodayUsd === undefined ? "not known" : usd(spentTodayUsd);
  const spentToday = dayUsd === undefined ? spent : `${spent} of ${usd(dayUsd)}`;
  showFigures(byId("budgets"), [
    ["Spent today", spentToday],
    ["Budget of a person and day", personDayUsd === undefined ? "none" : usd(personDayUsd)],
    ...(usage === undefined
      ? []
      : /** @type {[string, string][]} */ ([
          ["Calls in 30 days", String(usage.total.calls)],
          ["Cost in 30 days", usd(usage.total.costUsd)],
          ["Calls without a known price", String(usage.total.unpricedCalls)],
        ])),
  ]);
  if (usage === undefined) {
    byId("usage").replaceChildren(element("p", { text: "The store cannot be read at the moment." }));
    return;
  }
  /** @type {[string, string, readonly Sum[]][]} */
  const groups = [
    ["By model", "Model", usage.models],
    ["By operation", "Operation", usage.operations],
    ["By platform", "Platform", usage.platforms],
    ["Busiest places", "Place", usage.places],
    ["By person", "Person", usage.people],
    ["By day (UTC)", "Day", usage.days.toReversed()],
  ];
  byId("usage").replaceChildren(
    ...groups
      .filter(([, , sums]) => sums.length > 0)
      .map(([caption, first, sums]) =>
        table(
          caption,
          [first, "Calls", "Cost", "Tokens in", "Tokens out", "Pictures", "Audio"],
          sums.map((sum) => [
            sum.key,
            String(sum.calls),
            usd(sum.costUsd),
            String(sum.promptTokens),
            String(sum.completionTokens),
            String(sum.images),
            sum.audioSeconds === 0 ? "0" : duration(sum.audioSeconds * 1000),
          ]),
        ),
      ),
  );
}

/** @param {Data} data */
function showRefusals({ refusals }) {
  const rows = Object.entries(refusals).map(([code, count]) => [code, String(count)]);
  byId("refusals").replaceChildren(
    rows.length === 0 ? element("p", { text: "None." }) : table("By reason", ["Reason", "Requests"], rows),
  );
}

/** @param {Data} data */
function showProblems({ problems }) {
  const rows = problems.map(
    ({ time: at, level, message, code = "", reason = "", platform = "", turn = "", requestId = "" }) => [
      time(at),
      level,
      [message, code, reason].filter((text) => text !== "").join(": "),
      platform,
      turn,
      requestId,
    ],
  );
  byId("problems").replaceChildren(
    rows.length === 0
      ? element("p", { text: "None since the start." })
      : table("Newest first", ["Time", "Level", "What", "Platform", "Turn", "Request"], rows),
  );
}

/** @param {string} iso */
function time(iso) {
  const at = new Date(iso);
  const isToday = shown !== undefined && at.toDateString() === new Date(shown.time).toDateString();
  return at.toLocaleString(
    "en-GB",
    isToday ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "medium" },
  );
}

/** @param {number} ms */
function duration(ms) {
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 1) return `${Math.floor(ms / 1000)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** @param {number} count */
function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  return `${(count / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** @param {number} amount */
function usd(amount) {
  return `${amount.toFixed(amount !== 0 && Math.abs(amount) < 0.01 ? 6 : 2)} USD`;
}

function drawAnew() {
  forgetPlots();
  if (shown !== undefined) showPlots(shown);
}

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  drawAnew();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAnew);
document.addEventListener("visibilitychange", () => void refresh());
setInterval(() => void refresh(), everyMs);
await refresh();
