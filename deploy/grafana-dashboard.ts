/**
 * Prints the dashboard for Grafana: `npm run --silent grafana > parley.json`, then Dashboards, Import. A test compares the
 * table with the metrics that there are.
 */
import { pathToFileURL } from "node:url";

/** A query and what its series are called. `{~}` stands for the chosen instances, `[~]` for Grafana's rate interval. */
type Query = readonly [expression: string, legend: string];
interface Panel {
  readonly title: string;
  readonly unit: "short" | "ops" | "s" | "bytes" | "currencyUSD" | "percentunit";
  readonly queries: readonly Query[];
  readonly description?: string;
}
interface Row {
  readonly title: string;
  /** Panels that stand in a row; Grafana's grid has 24 columns. */
  readonly perLine: number;
  readonly panels: readonly Panel[];
}

const rate = (metric: string, by: string): string => `sum by (${by}) (rate(${metric}{~}[~]))`;
const quantile = (share: number, metric: string, by: string): string =>
  `histogram_quantile(${share}, ${rate(`${metric}_bucket`, `le, ${by}`)})`;
const halfAndMost = (metric: string): readonly Query[] => [
  [quantile(0.5, metric, "platform"), "{{platform}} p50"],
  [quantile(0.95, metric, "platform"), "{{platform}} p95"],
];

/** The panels at the top, as single values. */
const stats: readonly Panel[] = [
  {
    title: "Parts",
    description: "What /readyz says, of the worst instance",
    unit: "short",
    queries: [
      ["min by (part) (parley_part_ready{~})", "{{part}}"],
      [
        'min by (platform, connection) (parley_platform_connected{~, connection!="all"})',
        "{{platform}} {{connection}}",
      ],
    ],
  },
  {
    title: "Instances by version",
    unit: "short",
    queries: [["count by (version) (parley_build_info{~})", "{{version}}"]],
  },
  {
    title: "Turns in the last hour",
    unit: "short",
    queries: [["sum(increase(parley_turn_seconds_count{~}[1h]))", "turns"]],
  },
  {
    title: "Spent in the last 24 hours",
    unit: "currencyUSD",
    queries: [["sum(increase(parley_cost_usd_total{~}[24h]))", "USD"]],
  },
];

const rows: readonly Row[] = [
  {
    title: "Turns",
    perLine: 3,
    panels: [
      {
        title: "Turns a second, by outcome",
        unit: "ops",
        queries: [[rate("parley_turn_seconds_count", "outcome"), "{{outcome}}"]],
      },
      { title: "Until the whole reply is visible", unit: "s", queries: halfAndMost("parley_turn_seconds") },
      { title: "Until the first text is sent", unit: "s", queries: halfAndMost("parley_first_text_seconds") },
      {
        title: "Turns running and waiting",
        unit: "short",
        queries: [
          ["sum(parley_turns_running{~})", "running"],
          ["sum(parley_turns_waiting{~})", "waiting"],
        ],
      },
      {
        title: "Requests refused, by why",
        unit: "ops",
        queries: [[rate("parley_refusals_total", "code"), "{{code}}"]],
      },
      {
        title: "Answers rated an hour",
        description: "Ratings by people, changed ones included",
        unit: "ops",
        queries: [["sum by (rating) (increase(parley_ratings_total{~}[1h]))", "{{rating}}"]],
      },
    ],
  },
  {
    title: "Platforms",
    perLine: 3,
    panels: [
      {
        title: "Calls waiting for a platform's limits",
        unit: "short",
        queries: [["sum by (platform, urgency) (parley_delivery_waiting{~})", "{{platform}} {{urgency}}"]],
      },
      {
        title: "How long they waited, p95",
        unit: "s",
        queries: [
          [quantile(0.95, "parley_delivery_wait_seconds", "platform, urgency"), "{{platform}} {{urgency}}"],
        ],
      },
      {
        title: "Calls refused as too many",
        unit: "ops",
        queries: [[rate("parley_platform_limited_total", "platform, method"), "{{platform}} {{method}}"]],
      },
      {
        title: "Connections that are ready, 1 or 0",
        unit: "short",
        queries: [
          ["min by (platform, connection) (parley_platform_connected{~})", "{{platform}} {{connection}}"],
        ],
      },
      {
        title: "Connected again",
        unit: "short",
        queries: [["sum by (platform) (increase(parley_platform_reconnects_total{~}[1h]))", "{{platform}}"]],
      },
      {
        title: "Seconds since the last message",
        unit: "s",
        queries: [["time() - max by (platform) (parley_last_event_timestamp_seconds{~})", "{{platform}}"]],
      },
    ],
  },
  {
    title: "Gateway",
    perLine: 3,
    panels: [
      {
        title: "Calls a second, by outcome",
        unit: "ops",
        queries: [[rate("parley_gateway_calls_total", "operation, outcome"), "{{operation}} {{outcome}}"]],
      },
      {
        title: "Calls running and waiting",
        unit: "short",
        queries: [
          ["sum(parley_gateway_calls_running{~})", "running"],
          ["sum(parley_gateway_calls_waiting{~})", "waiting for GATEWAY_CONCURRENCY"],
        ],
      },
      {
        title: "Seconds waited before calls were repeated",
        description: "In each second: 1 means that one call waits all the time",
        unit: "s",
        queries: [[rate("parley_gateway_retry_wait_seconds_sum", "code"), "{{code}}"]],
      },
      {
        title: "Tokens a second",
        unit: "ops",
        queries: [[rate("parley_tokens_total", "model, direction"), "{{model}} {{direction}}"]],
      },
      {
        title: "USD an hour, by model",
        unit: "currencyUSD",
        queries: [[`${rate("parley_cost_usd_total", "model")} * 3600`, "{{model}}"]],
      },
      {
        title: "First words and whole answers by model, p50",
        unit: "s",
        queries: [
          [quantile(0.5, "parley_model_first_words_seconds", "model"), "{{model}} first words"],
          [quantile(0.5, "parley_model_seconds", "model"), "{{model}} whole"],
        ],
      },
    ],
  },
  {
    title: "Store",
    perLine: 4,
    panels: [
      {
        title: "Time of its operations, p99",
        unit: "s",
        queries: [[quantile(0.99, "parley_store_seconds", "operation"), "{{operation}}"]],
      },
      {
        title: "Operations a second",
        unit: "ops",
        queries: [
          [rate("parley_store_seconds_count", "operation"), "{{operation}}"],
          ['sum(rate(parley_store_seconds_count{~, outcome="error"}[~]))', "failed"],
        ],
      },
      {
        title: "Commits and waits for the disk a second",
        unit: "ops",
        queries: [
          ["sum(rate(parley_store_commits_total{~}[~]))", "commits"],
          ["sum(rate(parley_store_syncs_total{~}[~]))", "syncs"],
        ],
      },
      {
        title: "Size",
        unit: "bytes",
        queries: [["max(parley_store_bytes{~})", "bytes"]],
      },
    ],
  },
  {
    title: "Process",
    perLine: 4,
    panels: [
      {
        title: "CPU",
        unit: "percentunit",
        queries: [["rate(process_cpu_seconds_total{~}[~])", "{{instance}}"]],
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: [
          ["process_resident_memory_bytes{~}", "{{instance}} resident"],
          ["nodejs_heap_size_used_bytes{~}", "{{instance}} heap"],
        ],
      },
      {
        title: "Event loop lag, p99",
        unit: "s",
        queries: [["nodejs_eventloop_lag_p99_seconds{~}", "{{instance}}"]],
      },
      { title: "HTTP connections", unit: "short", queries: [["parley_http_connections{~}", "{{instance}}"]] },
    ],
  },
];

const datasource = { type: "prometheus", uid: "${datasource}" };
const columns = 24;

/** A menu above the dashboard with the values of a label of every instance. */
const toVariable = (name: string, label: string, matchers: string) => {
  const query = `label_values(parley_build_info${matchers}, ${name})`;
  const current = { text: ["All"], value: ["$__all"] };
  return {
    name,
    label,
    type: "query",
    datasource,
    query: { query, refId: name },
    definition: query,
    includeAll: true,
    multi: true,
    refresh: 2,
    current,
  };
};

const readiness = { "0": { text: "not ready", color: "red" }, "1": { text: "ready", color: "green" } };
const statOptions = {
  reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
  textMode: "value_and_name",
};
const seriesOptions = {
  legend: { displayMode: "list", placement: "bottom" },
  tooltip: { mode: "multi", sort: "desc" },
};

const toPanel = ({ title, unit, queries, description = "" }: Panel, type: "stat" | "timeseries") => ({
  type,
  title,
  description,
  datasource,
  fieldConfig: {
    defaults: {
      unit,
      min: 0,
      ...(title === "Parts" ? { mappings: [{ type: "value", options: readiness }] } : {}),
    },
    overrides: [],
  },
  options:
    type === "stat"
      ? { ...statOptions, colorMode: title === "Parts" ? "background" : "value" }
      : seriesOptions,
  targets: queries.map(([expression, legendFormat], at) => ({
    refId: "ABC"[at],
    datasource,
    expr: expression
      .replaceAll("{~", '{job=~"$job", instance=~"$instance"')
      .replaceAll("[~]", "[$__rate_interval]"),
    legendFormat,
    ...(type === "stat" ? { instant: true } : {}),
  })),
});

/** Returns the dashboard in Grafana's JSON, one line of panels below the other. */
export function createDashboard() {
  let y = 0;
  const place = (panels: readonly ReturnType<typeof toPanel>[], perLine: number, h: number) => {
    const w = columns / perLine;
    const placed = panels.map((panel, at) => ({
      ...panel,
      gridPos: { h, w, x: (at % perLine) * w, y: y + Math.floor(at / perLine) * h },
    }));
    y += Math.ceil(panels.length / perLine) * h;
    return placed;
  };
  const top = place(
    stats.map((panel) => toPanel(panel, "stat")),
    4,
    5,
  );
  const panels = rows.flatMap(({ title, perLine, panels: own }) => {
    const heading = {
      type: "row",
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: columns, x: 0, y },
    };
    y += 1;
    return [
      heading,
      ...place(
        own.map((panel) => toPanel(panel, "timeseries")),
        perLine,
        8,
      ),
    ];
  });
  return {
    uid: "parley",
    title: "Parley",
    tags: ["parley"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    timezone: "browser",
    time: { from: "now-6h", to: "now" },
    templating: {
      list: [
        { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
        toVariable("job", "Job", ""),
        toVariable("instance", "Instance", '{job=~"$job"}'),
      ],
    },
    annotations: { list: [] },
    panels: [...top, ...panels].map((panel, at) => ({ id: at + 1, ...panel })),
  };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href)
  console.log(JSON.stringify(createDashboard(), null, 2));
