import type * as Prom from "prom-client";

/** Values that are read when metrics are exported. */
export interface MetricsSources {
  /** The version of Parley. */
  readonly version?: string;
  /** How often the store lost written data since the start. */
  readonly countDataLosses?: () => number;
  /** The writes of the store since the start. */
  readonly countWrites?: () => { readonly commits: number; readonly syncs: number };
  /** How long the store's operations took. */
  readonly storeLatency?: () => readonly LatencySeries[];
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
  /** The keys that the embedded gateway has issued. */
  readonly gatewayKeys?: () => Promise<{ readonly active: number; readonly revoked: number }>;
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

type Sample = readonly [value: number | undefined, labels?: Readonly<Record<string, string>>];

/** Registers a metric for each source. */
export function addSources(prom: typeof Prom, registry: Prom.Registry, sources: MetricsSources): void {
  const addGauge = (
    name: string,
    help: string,
    labelNames: readonly string[],
    read: () => readonly Sample[] | Promise<readonly Sample[]>,
  ): void => {
    registry.registerMetric(
      new prom.Gauge({
        name,
        help,
        labelNames: [...labelNames],
        registers: [],
        async collect() {
          const samples = await read();
          this.reset();
          // Without labels a reset leaves a zero, which differs from an unknown value.
          if (labelNames.length === 0) this.remove();
          for (const [value, labels = {}] of samples) if (value !== undefined) this.set({ ...labels }, value);
        },
      }),
    );
  };
  const addCounter = (name: string, help: string, count: () => number): void => {
    registry.registerMetric(
      new prom.Counter({
        name,
        help,
        registers: [],
        collect() {
          this.reset();
          this.inc(count());
        },
      }),
    );
  };
  addStoreSources(registry, sources, { addGauge, addCounter });
  const { version, deliveryWaiting, connections, partsReady, httpConnections, load, gatewayKeys } = sources;
  if (version !== undefined) {
    const labels = { version, node: process.versions.node };
    addGauge("parley_build_info", "The version that runs; always 1", ["version", "node"], () => [
      [1, labels],
    ]);
  }
  if (partsReady !== undefined)
    addGauge("parley_part_ready", "Whether a part of /readyz is ready", ["part"], async () =>
      Object.entries(await partsReady()).map(([part, isReady]) => [isReady ? 1 : 0, { part }]),
    );
  if (connections !== undefined)
    addGauge(
      "parley_platform_connected",
      "Whether a connection to a platform is ready: of Discord each shard, where there are several",
      ["platform", "connection"],
      () => connections().map(({ isReady, ...labels }) => [isReady ? 1 : 0, labels]),
    );
  if (httpConnections !== undefined)
    addGauge("parley_http_connections", "Open connections of the HTTP server", [], () => [
      [httpConnections()],
    ]);
  if (load !== undefined) {
    addGauge("parley_turns_running", "Turns that run", [], () => [[load().turns.running]]);
    addGauge("parley_turns_waiting", "Turns that wait for their conversation", [], () => [
      [load().turns.waiting],
    ]);
    addGauge("parley_gateway_calls_running", "Gateway calls that run", [], () => [
      [load().gatewayCalls.running],
    ]);
    const waitingHelp = "Gateway calls that wait for GATEWAY_CONCURRENCY";
    addGauge("parley_gateway_calls_waiting", waitingHelp, [], () => [[load().gatewayCalls.waiting]]);
  }
  if (gatewayKeys !== undefined)
    addGauge("parley_gateway_keys", "Keys that the embedded gateway has issued", ["state"], async () =>
      Object.entries(await gatewayKeys()).map(([state, count]) => [count, { state }]),
    );
  if (deliveryWaiting !== undefined)
    addGauge(
      "parley_delivery_waiting",
      "Calls that wait for room under a platform's limits, by what they are for",
      ["platform", "method", "urgency"],
      () => deliveryWaiting().map(({ count, ...labels }) => [count, labels]),
    );
}

interface Adding {
  readonly addGauge: (
    name: string,
    help: string,
    labels: readonly string[],
    read: () => Promise<readonly Sample[]>,
  ) => void;
  readonly addCounter: (name: string, help: string, count: () => number) => void;
}

function addStoreSources(
  registry: Prom.Registry,
  sources: MetricsSources,
  { addGauge, addCounter }: Adding,
): void {
  const { countDataLosses, countWrites, storeLatency, storeBytes } = sources;
  if (countDataLosses !== undefined) {
    const help = "How often the loss of stored data was noticed since the start";
    addCounter("parley_store_data_losses_total", help, countDataLosses);
  }
  if (countWrites !== undefined) {
    const help = "How often the disk was waited for; 0 where the store is a server's";
    addCounter(
      "parley_store_commits_total",
      "Transactions that wrote to the store",
      () => countWrites().commits,
    );
    addCounter("parley_store_syncs_total", help, () => countWrites().syncs);
  }
  if (storeBytes !== undefined)
    addGauge(
      "parley_store_bytes",
      "Size of the store: its files, or the memory of its server",
      [],
      async () => [[await storeBytes()]],
    );
  // The registry uses only these fields of prom-client's interface.
  if (storeLatency !== undefined)
    registry.registerMetric(toLatencyMetric(storeLatency) as unknown as Prom.Metric);
}

function toLatencyMetric(read: () => readonly LatencySeries[]) {
  const name = "parley_store_seconds";
  const help = "Time of the store's operations: read, write (durable), soon and count (wait for no disk)";
  return {
    name,
    help,
    type: "histogram",
    get() {
      const values = read().flatMap(({ labels, buckets, sumSeconds, count }) => [
        ...buckets.map((bucket) => ({
          metricName: `${name}_bucket`,
          labels: { le: bucket.le, ...labels },
          value: bucket.count,
        })),
        { metricName: `${name}_bucket`, labels: { le: "+Inf", ...labels }, value: count },
        { metricName: `${name}_sum`, labels, value: sumSeconds },
        { metricName: `${name}_count`, labels, value: count },
      ]);
      return Promise.resolve({ name, help, type: "histogram", aggregator: "sum", values });
    },
  };
}

/** The upper limits in seconds. */
const bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5] as const;

/** One series of a {@link LatencyHistogram}: what was counted with one operation and outcome. */
interface LatencySeries {
  readonly labels: Readonly<Record<string, string>>;
  /** The counts by upper limit in seconds, each including the ones below it. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
  readonly sumSeconds: number;
  readonly count: number;
}

/**
 * Counts how long operations took. It replaces prom-client's histogram, since the store is used from the
 * start, and prom-client would cost an idle bot megabytes for figures that nobody has asked for yet.
 */
export interface LatencyHistogram {
  readonly observe: (operation: string, outcome: string, seconds: number) => void;
  series(): readonly LatencySeries[];
}

interface Counted {
  readonly operation: string;
  readonly outcome: string;
  readonly counts: Float64Array;
  sumSeconds: number;
  count: number;
}

export function createLatencyHistogram(): LatencyHistogram {
  const counted: Counted[] = [];
  return {
    observe(operation, outcome, seconds) {
      let own = counted.find((one) => one.operation === operation && one.outcome === outcome);
      if (own === undefined) {
        own = { operation, outcome, counts: new Float64Array(bounds.length), sumSeconds: 0, count: 0 };
        counted.push(own);
      }
      own.count += 1;
      own.sumSeconds += seconds;
      const index = bounds.findIndex((bound) => seconds <= bound);
      if (index !== -1) own.counts[index] = (own.counts[index] ?? 0) + 1;
    },
    series: () =>
      counted.map(({ operation, outcome, counts, sumSeconds, count }) => {
        let below = 0;
        const buckets = bounds.map((le, index) => ({ le, count: (below += counts[index] ?? 0) }));
        return { labels: { operation, outcome }, buckets, sumSeconds, count };
      }),
  };
}
