import * as Prom from "prom-client";
import { systemClock } from "../support/clock.ts";
import { createRareLog, type Log, type Measured, type Meter } from "../core/telemetry.ts";

/** What is read when metrics are exported. A source that is absent has no samples. */
export interface MetricsSources {
  /** The version of Parley. */
  readonly version?: string;
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
  /** Returns the values of these metrics. A histogram has one for each bucket, its sum and its count. */
  read(names: readonly string[]): Promise<readonly Reading[]>;
}

/** One value of a metric. */
export interface Reading {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/**
 * How often the delay of the event loop is measured, in milliseconds. prom-client's default of 10 would wake
 * up an idle process for nothing.
 */
const loopDelayEveryMs = 50;

/** The most models in the labels. The names in a gateway's answers are its own. */
const maxModels = 200;
/** The most in histograms, of which each has a series for each bucket. */
const maxTimedModels = 10;
const maxModelChars = 100;

/** Names a model in a label. Past the limit it is `other`, since each name makes a permanent series. */
type ModelOf = (model: string, max?: number) => string;

function createModelLabels(): ModelOf {
  const known = new Map<string, number>();
  return (model, max = maxModels) => {
    const name = model.slice(0, maxModelChars);
    if (!known.has(name) && known.size < maxModels) known.set(name, known.size);
    return (known.get(name) ?? maxModels) < max ? name : "other";
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
  /** Makes it a gauge with the time of the last event, in Unix seconds. */
  readonly isTime?: true;
  read(event: E, modelOf: ModelOf): readonly Sample[];
}

/** Powers of the square root of two, from an eighth of a second to eight minutes, as they are written. */
const modelSeconds = Array.from({ length: 25 }, (_, at) => Number((2 ** (at / 2 - 3)).toPrecision(2)));

const instruments: {
  readonly [K in Measured["kind"]]: readonly Instrument<Extract<Measured, { readonly kind: K }>>[];
} = {
  accepted: [
    {
      name: "parley_last_event_timestamp_seconds",
      help: "When the last event of a platform was accepted, in Unix time",
      labels: ["platform"],
      isTime: true,
      read: ({ platform }) => [[1, { platform }]],
    },
  ],
  reconnected: [
    {
      name: "parley_platform_reconnects_total",
      help: "How often a platform was connected again, as seen once a second",
      labels: ["platform"],
      read: ({ platform }) => [[1, { platform }]],
    },
  ],
  stored: [
    {
      name: "parley_store_seconds",
      help: "Time of the store's operations: read, write (durable), soon and count (wait for no disk)",
      labels: ["operation", "outcome"],
      buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
      read: ({ operation, outcome, seconds }) => [[seconds, { operation, outcome }]],
    },
  ],
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
    {
      name: "parley_model_first_words_seconds",
      help: "Time of a chat model until the first words of an answer",
      labels: ["model"],
      buckets: modelSeconds,
      read: ({ operation, model, usage, isAside, firstSeconds, seconds }, modelOf) =>
        operation !== "chat" || usage === undefined || isAside === true
          ? []
          : [[firstSeconds ?? seconds, { model: modelOf(model, maxTimedModels) }]],
    },
    {
      name: "parley_model_seconds",
      help: "Time of a model until the end of an answer, or until it failed",
      labels: ["model", "outcome"],
      buckets: modelSeconds,
      read: ({ model, usage, isAside, seconds }, modelOf) =>
        isAside === true
          ? []
          : [
              [
                seconds,
                {
                  model: modelOf(model, maxTimedModels),
                  outcome: usage === undefined ? "failed" : "answered",
                },
              ],
            ],
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

/** A meter that logs where counting fails, so that who reports goes on. */
export function createMeter(take: Meter, log: Pick<Log, "warn">): Meter {
  const warn = createRareLog(log);
  return (event) => {
    try {
      take(event);
    } catch (error) {
      warn(event.kind, { err: error, kind: event.kind }, "an event was not counted");
    }
  };
}

/**
 * Creates the process's metrics.
 * @param sourcesOf is called when the metrics are exported
 * @param now the time in Unix ms
 */
export function createMetrics(
  sourcesOf: () => MetricsSources = () => ({}),
  now: () => number = () => systemClock.now(),
): Metrics {
  const registry = new Prom.Registry();
  Prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
  const modelOf = createModelLabels();
  const counting = new Map(
    Object.entries(instruments).map(([kind, each]) => [
      kind,
      (each as readonly Instrument<Measured>[]).map((instrument) =>
        toMeter(instrument, registry, modelOf, now),
      ),
    ]),
  );
  addSources(registry, sourcesOf);
  return {
    take(event) {
      for (const meter of counting.get(event.kind) ?? []) meter(event);
    },
    text: async () => ({ body: await registry.metrics(), contentType: registry.contentType }),
    async read(names) {
      const found = await Promise.all(names.map(async (name) => await registry.getSingleMetric(name)?.get()));
      return found.flatMap((metric) =>
        (metric?.values ?? []).map(
          ({ metricName = metric?.name, labels, value }: Prom.MetricValueWithName<string>) => ({
            name: metricName ?? "",
            labels: Object.fromEntries(Object.entries(labels).map(([label, of]) => [label, String(of)])),
            value,
          }),
        ),
      );
    },
  };
}

/** Registers one instrument. */
function toMeter(
  { name, help, labels, buckets, isTime, ...instrument }: Instrument<Measured>,
  registry: Prom.Registry,
  modelOf: ModelOf,
  now: () => number,
): Meter {
  const options = { name, help, labelNames: [...labels], registers: [registry] };
  const record = ((): ((labels: Record<string, string>, value: number) => void) => {
    if (isTime === true) {
      const gauge = new Prom.Gauge(options);
      return (of) => gauge.set(of, now() / 1000);
    }
    if (buckets !== undefined) {
      const histogram = new Prom.Histogram({ ...options, buckets });
      return (of, value) => histogram.observe(of, value);
    }
    const counter = new Prom.Counter(options);
    return (of, value) => counter.inc(of, value);
  })();
  return (event) => {
    for (const [value, of = {}] of instrument.read(event, modelOf))
      if (value !== undefined) record({ ...of }, value);
  };
}

/** Registers the metrics that are read from the sources. */
function addSources(registry: Prom.Registry, sourcesOf: () => MetricsSources): void {
  const add = (
    type: "Gauge" | "Counter",
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (sources: MetricsSources) => readonly Sample[] | Promise<readonly Sample[]>,
  ): void => {
    const metric = new Prom[type]({
      name,
      help,
      labelNames: [...labelNames],
      registers: [registry],
      async collect() {
        const samples = await read(sourcesOf());
        metric.reset();
        // Without labels a reset leaves a zero, which differs from an unknown value.
        if (labelNames.length === 0) metric.remove();
        for (const [value, labels = {}] of samples) if (value !== undefined) metric.inc({ ...labels }, value);
      },
    });
  };
  add("Counter", "parley_store_commits_total", "Transactions that wrote to the store", [], (sources) => [
    [sources.countWrites?.().commits],
  ]);
  add(
    "Counter",
    "parley_store_syncs_total",
    "How often the disk was waited for; 0 where the store is a server's",
    [],
    (sources) => [[sources.countWrites?.().syncs]],
  );
  add(
    "Gauge",
    "parley_store_bytes",
    "Size of the store: its files, or the memory of its server",
    [],
    async (sources) => [[await sources.storeBytes?.()]],
  );
  add("Gauge", "parley_build_info", "The version that runs; always 1", ["version", "node"], ({ version }) =>
    version === undefined ? [] : [[1, { version, node: process.versions.node }]],
  );
  add("Gauge", "parley_part_ready", "Whether a part of /readyz is ready", ["part"], async (sources) =>
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
    (sources) => (sources.connections?.() ?? []).map(({ isReady, ...labels }) => [isReady ? 1 : 0, labels]),
  );
  add("Gauge", "parley_http_connections", "Open connections of the HTTP server", [], (sources) => [
    [sources.httpConnections?.()],
  ]);
  add("Gauge", "parley_turns_running", "Turns that run", [], ({ load }) => [[load?.().turns.running]]);
  add("Gauge", "parley_turns_waiting", "Turns that wait for their conversation", [], ({ load }) => [
    [load?.().turns.waiting],
  ]);
  add("Gauge", "parley_gateway_calls_running", "Gateway calls that run", [], ({ load }) => [
    [load?.().gatewayCalls.running],
  ]);
  add(
    "Gauge",
    "parley_gateway_calls_waiting",
    "Gateway calls that wait for GATEWAY_CONCURRENCY",
    [],
    ({ load }) => [[load?.().gatewayCalls.waiting]],
  );
  add(
    "Gauge",
    "parley_delivery_waiting",
    "Calls that wait for room under a platform's limits, by what they are for",
    ["platform", "method", "urgency"],
    (sources) => (sources.deliveryWaiting?.() ?? []).map(({ count, ...labels }) => [count, labels]),
  );
}
