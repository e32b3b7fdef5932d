import type * as Prom from "prom-client";
import { createRareLog, type Log, type Measured, type Meter } from "../core/telemetry.ts";

/** What is read when metrics are exported. A source that is absent has no samples. */
export interface MetricsSources {
  /** The version of Parley. */
  readonly version?: string;
  /** How often the store lost written data since the start. */
  /** The writes of the store since the start. */
  readonly countWrites?: () => { readonly commits: number; readonly syncs: number };
  /** Resolves to `undefined` where the size is not known. */
  readonly storeBytes?: () => Promise<number | undefined>;
  /** The calls that wait for room under a platform's limits. */
  readonly deliveryWaiting?: () => readonly DeliveryWaiting[];
  readonly connections?: () => readonly PlatformConnection[];
  /** Whether each part is ready, by its name in `/readyz`. */
  readonly partsReady?: () => Promise<Readonly<Record<string, boolean>>>;
  /** The open HTTP connections. */
  readonly httpConnections?: () => number;
  readonly load?: () => Load;
}

/** What runs and what waits. */
export interface Load {
  readonly turns: { readonly running: number; readonly waiting: number };
  readonly gatewayCalls: { readonly running: number; readonly waiting: number };
}

/** One connection of a platform, such as a shard of Discord. */
export interface PlatformConnection {
  readonly platform: string;
  readonly connection: string;
  readonly isReady: boolean;
}

/** The waiting calls of one method. */
export interface DeliveryWaiting {
  readonly platform: string;
  readonly method: string;
  readonly urgency: string;
  readonly count: number;
}

/** The metrics of the process. */
export interface Metrics {
  /** Counts what happened. */
  readonly take: Meter;
  /** Returns all metrics in the Prometheus text format. */
  text(): Promise<{ readonly body: string; readonly contentType: string }>;
}

/**
 * How often the delay of the event loop is measured, in milliseconds. prom-client's default of 10 would wake
 * up an idle process for nothing.
 */
const loopDelayEveryMs = 50;

/** The most models in the labels. The names in a gateway's answers are its own. */
const maxModels = 200;
const maxModelChars = 100;

/** Names a model in a label. Past the limit it is `other`, since each name makes a permanent series. */
function createModelLabels(): (model: string) => string {
  const known = new Set<string>();
  return (model) => {
    const name = model.slice(0, maxModelChars);
    if (known.has(name)) return name;
    if (known.size >= maxModels) return "other";
    known.add(name);
    return name;
  };
}

/** A value with its labels. One that is `undefined` is not known, and left out. */
type Sample = readonly [value: number | undefined, labels?: Readonly<Record<string, string>>];

/** What is counted of one kind of event: a histogram where there are buckets, otherwise a counter. */
interface Instrument<E> {
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: number[];
  read(event: E, modelOf: (model: string) => string): readonly Sample[];
}

const instruments: {
  readonly [K in Measured["kind"]]?: readonly Instrument<Extract<Measured, { readonly kind: K }>>[];
} = {
  turn: [
    {
      name: "parley_turn_seconds",
      help: "Time from the start of a turn until its whole reply is visible",
      labels: ["platform", "kind", "outcome"],
      buckets: [0.1, 0.3, 1, 3, 10, 30, 100, 300],
      read: ({ platform, event: kind, outcome, seconds }) => [[seconds, { platform, kind, outcome }]],
    },
  ],
  "first-text": [
    {
      name: "parley_first_text_seconds",
      help: "Time from the start of a turn until its first text is sent to the platform",
      labels: ["platform"],
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
      read: ({ platform, seconds }) => [[seconds, { platform }]],
    },
  ],
  delivered: [
    {
      name: "parley_delivery_wait_seconds",
      help: "Time that calls to a platform waited for room under its limits; those sent at once are not counted",
      labels: ["platform", "method", "urgency"],
      buckets: [0.001, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100],
      read: ({ platform, method, urgency, seconds }) => [[seconds, { platform, method, urgency }]],
    },
  ],
  limited: [
    {
      name: "parley_platform_limited_total",
      help: "Calls that a platform refused as too many",
      labels: ["platform", "method"],
      read: ({ platform, method }) => [[1, { platform, method }]],
    },
  ],
  asked: [
    {
      name: "parley_gateway_calls_total",
      help: "Gateway calls by operation and outcome",
      labels: ["operation", "outcome"],
      read: ({ operation, outcome }) => [[1, { operation, outcome }]],
    },
    {
      name: "parley_tokens_total",
      help: "Tokens reported by the gateway, or estimated when it reports none",
      labels: ["model", "direction"],
      read({ model, usage }, modelOf) {
        if (usage === undefined) return [];
        return [
          [usage.promptTokens, { model: modelOf(model), direction: "in" }],
          [usage.completionTokens, { model: modelOf(model), direction: "out" }],
        ];
      },
    },
  ],
  charged: [
    {
      name: "parley_cost_usd_total",
      help: "Cost of gateway calls in US dollars, as budgets count it",
      labels: ["model", "estimated"],
      read: ({ model, usage }, modelOf) => [
        [usage.costUsd, { model: modelOf(model), estimated: String(usage.isEstimated) }],
      ],
    },
  ],
  retried: [
    {
      name: "parley_gateway_retry_wait_seconds",
      help: "Time until a failed gateway call was repeated, by why it had failed (gateway-rate-limited, …)",
      labels: ["operation", "code"],
      buckets: [0.1, 0.3, 1, 3, 10, 30, 100],
      read: ({ operation, code, seconds }) => [[seconds, { operation, code }]],
    },
  ],
  rated: [
    {
      name: "parley_ratings_total",
      help: "Ratings of answers by people, changed ones included",
      labels: ["platform", "rating", "model"],
      read: ({ platform, rating, model }, modelOf) => [[1, { platform, rating, model: modelOf(model) }]],
    },
  ],
  refused: [
    {
      name: "parley_refusals_total",
      help: "Requests that were not taken, or were given up (too-old; busy, rate-limited, over-budget, access-denied, store-unavailable, …)",
      labels: ["platform", "code"],
      read: ({ platform, code }) => [[1, { platform, code }]],
    },
  ],
};

/** Passes events on to all who count them. Where counting fails, that is logged, and who reports goes on. */
export function createMeter(sinks: Iterable<Meter>, log: Pick<Log, "warn">): Meter {
  const warn = createRareLog(log);
  return (event) => {
    for (const take of sinks) {
      try {
        take(event);
      } catch (error) {
        warn(event.kind, { err: error, kind: event.kind }, "an event was not counted");
      }
    }
  };
}

interface Loaded {
  readonly prom: typeof Prom;
  readonly registry: Prom.Registry;
  readonly count: Meter;
}

/**
 * Creates the process's metrics. prom-client is imported on first use, since it costs an idle bot memory.
 * @param sourcesOf is called when the metrics are first exported
 */
export function createMetrics(sourcesOf: () => MetricsSources = () => ({})): Metrics {
  let loading: Promise<Loaded> | undefined;
  let hasSources = false;
  const storeTimes = createStoreTimes();
  const loaded = (): Promise<Loaded> => (loading ??= load());
  return {
    take(event) {
      // The store is used from the start on, and loads nothing.
      if (event.kind === "stored") storeTimes.observe(event.operation, event.outcome, event.seconds);
      else if (event.kind in instruments) void loaded().then(({ count }) => count(event));
    },
    async text() {
      const { prom, registry } = await loaded();
      if (!hasSources) {
        addSources(prom, registry, sourcesOf());
        // The registry uses only these fields of prom-client's interface.
        registry.registerMetric(storeTimes.metric as unknown as Prom.Metric);
      }
      hasSources = true;
      return { body: await registry.metrics(), contentType: registry.contentType };
    },
  };
}

async function load(): Promise<Loaded> {
  const prom = await import("prom-client");
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
  const modelOf = createModelLabels();
  const registers = [registry];
  const counting = new Map<string, Meter[]>();
  for (const [kind, each] of Object.entries(instruments))
    for (const instrument of each as readonly Instrument<Measured>[]) {
      const { name, help, labels, buckets } = instrument;
      const options = { name, help, labelNames: [...labels], registers };
      const histogram = buckets && new prom.Histogram({ ...options, buckets });
      const counter = buckets === undefined ? new prom.Counter(options) : undefined;
      const meter: Meter = (event) => {
        for (const [value, of = {}] of instrument.read(event, modelOf)) {
          if (value === undefined) continue;
          histogram?.observe({ ...of }, value);
          counter?.inc({ ...of }, value);
        }
      };
      counting.set(kind, [...(counting.get(kind) ?? []), meter]);
    }
  return {
    prom,
    registry,
    count(event) {
      for (const meter of counting.get(event.kind) ?? []) meter(event);
    },
  };
}

/** Registers the metrics that are read from the sources. */
function addSources(prom: typeof Prom, registry: Prom.Registry, sources: MetricsSources): void {
  const add = (
    type: "Gauge" | "Counter",
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly Sample[] | Promise<readonly Sample[]>,
  ): void => {
    const metric = new prom[type]({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      async collect() {
        const samples = await read();
        metric.reset();
        // Without labels a reset leaves a zero, which differs from an unknown value.
        if (labelNames.length === 0) metric.remove();
        for (const [value, labels = {}] of samples) if (value !== undefined) metric.inc({ ...labels }, value);
      },
    });
  };
  const { version, load } = sources;
  add("Counter", "parley_store_commits_total", "Transactions that wrote to the store", [], () => [
    [sources.countWrites?.().commits],
  ]);
  add(
    "Counter",
    "parley_store_syncs_total",
    "How often the disk was waited for; 0 where the store is a server's",
    [],
    () => [[sources.countWrites?.().syncs]],
  );
  add(
    "Gauge",
    "parley_store_bytes",
    "Size of the store: its files, or the memory of its server",
    [],
    async () => [[await sources.storeBytes?.()]],
  );
  add("Gauge", "parley_build_info", "The version that runs; always 1", ["version", "node"], () =>
    version === undefined ? [] : [[1, { version, node: process.versions.node }]],
  );
  add("Gauge", "parley_part_ready", "Whether a part of /readyz is ready", ["part"], async () =>
    Object.entries((await sources.partsReady?.()) ?? {}).map(([part, isReady]) => [
      isReady ? 1 : 0,
      { part },
    ]),
  );
  add(
    "Gauge",
    "parley_platform_connected",
    "Whether a connection to a platform is ready: of Discord each shard, where there are several",
    ["platform", "connection"],
    () => (sources.connections?.() ?? []).map(({ isReady, ...labels }) => [isReady ? 1 : 0, labels]),
  );
  add("Gauge", "parley_http_connections", "Open connections of the HTTP server", [], () => [
    [sources.httpConnections?.()],
  ]);
  add("Gauge", "parley_turns_running", "Turns that run", [], () => [[load?.().turns.running]]);
  add("Gauge", "parley_turns_waiting", "Turns that wait for their conversation", [], () => [
    [load?.().turns.waiting],
  ]);
  add("Gauge", "parley_gateway_calls_running", "Gateway calls that run", [], () => [
    [load?.().gatewayCalls.running],
  ]);
  add("Gauge", "parley_gateway_calls_waiting", "Gateway calls that wait for GATEWAY_CONCURRENCY", [], () => [
    [load?.().gatewayCalls.waiting],
  ]);
  add(
    "Gauge",
    "parley_delivery_waiting",
    "Calls that wait for room under a platform's limits, by what they are for",
    ["platform", "method", "urgency"],
    () => (sources.deliveryWaiting?.() ?? []).map(({ count, ...labels }) => [count, labels]),
  );
}

/** The upper limits of the store's times in seconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const;

/** The times of one operation with one outcome. */
interface StoreTimes {
  readonly labels: { readonly operation: string; readonly outcome: string };
  /** How many times were in each bucket. */
  readonly counts: Float64Array;
  sumSeconds: number;
  count: number;
}

/**
 * Counts how long the store's operations took. It replaces prom-client's histogram, since the store is used
 * from the start, and prom-client would cost an idle bot megabytes for figures that nobody has asked for yet.
 */
function createStoreTimes() {
  const all: StoreTimes[] = [];
  const name = "parley_store_seconds";
  const help = "Time of the store's operations: read, write (durable), soon and count (wait for no disk)";
  return {
    observe(operation: string, outcome: string, seconds: number): void {
      let own = all.find(({ labels }) => labels.operation === operation && labels.outcome === outcome);
      if (own === undefined) {
        const counts = new Float64Array(bounds.length);
        own = { labels: { operation, outcome }, counts, sumSeconds: 0, count: 0 };
        all.push(own);
      }
      own.count += 1;
      own.sumSeconds += seconds;
      const index = bounds.findIndex((bound) => seconds <= bound);
      if (index !== -1) own.counts[index] = (own.counts[index] ?? 0) + 1;
    },
    metric: {
      name,
      help,
      type: "histogram",
      async get() {
        const values = all.flatMap(({ labels, counts, sumSeconds, count }) => {
          let below = 0;
          const buckets = bounds.map((le, index) => [le, (below += counts[index] ?? 0)] as const);
          return [
            ...[...buckets, ["+Inf", count] as const].map(([le, value]) => ({
              metricName: `${name}_bucket`,
              labels: { le, ...labels },
              value,
            })),
            { metricName: `${name}_sum`, labels, value: sumSeconds },
            { metricName: `${name}_count`, labels, value: count },
          ];
        });
        return { name, help, type: "histogram", aggregator: "sum", values };
      },
    },
  };
}
