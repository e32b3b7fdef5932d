import type { Counter, Histogram, Registry } from "prom-client";
import type { Meter } from "../core/telemetry.ts";

/** A {@link Meter} whose values can be exported. */
export interface Metrics extends Meter {
  /** All metrics in the Prometheus text format. */
  text(): Promise<{ readonly body: string; readonly contentType: string }>;
}

/** Values that are read when metrics are exported. */
export interface MetricsSources {
  /** How often the store lost written data since the start. */
  readonly countDataLosses?: () => number;
  /** Writes of the store since the start. */
  readonly countWrites?: () => { readonly commits: number; readonly syncs: number };
  /** Calls that wait for room under a platform's limits. */
  readonly deliveryWaiting?: () => readonly DeliveryWaiting[];
}

/** Calls of one method that wait. */
export interface DeliveryWaiting {
  readonly platform: string;
  readonly method: string;
  readonly urgency: string;
  readonly count: number;
}

interface Instruments {
  readonly registry: Registry;
  readonly turns: Histogram;
  readonly firstText: Histogram;
  readonly delivery: Histogram;
  readonly limited: Counter;
  readonly calls: Counter;
  readonly tokens: Counter;
  readonly cost: Counter;
}

/** Metrics of the process. prom-client is imported on first use, since it costs memory that an idle bot does not need. */
export function createMetrics(sources: MetricsSources = {}): Metrics {
  let loading: Promise<Instruments> | undefined;
  const instruments = (): Promise<Instruments> => (loading ??= load(sources));
  const record = (write: (to: Instruments) => void): void => {
    void instruments().then(write);
  };
  return {
    turn(labels, seconds) {
      record(({ turns }) => {
        turns.observe(labels, seconds);
      });
    },
    firstText(labels, seconds) {
      record(({ firstText }) => {
        firstText.observe(labels, seconds);
      });
    },
    delivery(labels, waitedSeconds) {
      record(({ delivery }) => {
        delivery.observe(labels, waitedSeconds);
      });
    },
    platformLimited(labels) {
      record(({ limited }) => {
        limited.inc(labels);
      });
    },
    call({ operation, outcome, model }, usage) {
      record(({ calls, tokens, cost }) => {
        calls.inc({ operation, outcome });
        if (usage.promptTokens !== undefined) tokens.inc({ model, direction: "in" }, usage.promptTokens);
        if (usage.completionTokens !== undefined)
          tokens.inc({ model, direction: "out" }, usage.completionTokens);
        if (usage.costUsd !== undefined)
          cost.inc({ model, estimated: String(usage.isEstimated) }, usage.costUsd);
      });
    },
    async text() {
      const { registry } = await instruments();
      return { body: await registry.metrics(), contentType: registry.contentType };
    },
  };
}

async function load({ countDataLosses, countWrites, deliveryWaiting }: MetricsSources): Promise<Instruments> {
  const { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } = await import("prom-client");
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const addCounter = (name: string, help: string, count: () => number): void => {
    registry.registerMetric(
      new Counter({
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
  if (countDataLosses !== undefined) {
    const help = "How often the loss of stored data was noticed since the start";
    addCounter("parley_store_data_losses_total", help, countDataLosses);
  }
  if (countWrites !== undefined) {
    addCounter(
      "parley_store_commits_total",
      "Transactions that wrote to the store",
      () => countWrites().commits,
    );
    const help = "How often the disk was waited for; 0 where the store is a server's";
    addCounter("parley_store_syncs_total", help, () => countWrites().syncs);
  }
  if (deliveryWaiting !== undefined) {
    registry.registerMetric(
      new Gauge({
        name: "parley_delivery_waiting",
        help: "Calls that wait for room under a platform's limits, by what they are for",
        labelNames: ["platform", "method", "urgency"],
        registers: [],
        collect() {
          this.reset();
          for (const { count, ...labels } of deliveryWaiting()) this.set(labels, count);
        },
      }),
    );
  }
  return {
    registry,
    turns: new Histogram({
      name: "parley_turn_seconds",
      help: "Time from the start of a turn until its whole reply is visible",
      labelNames: ["platform", "kind", "outcome"],
      buckets: [0.1, 0.3, 1, 3, 10, 30, 100, 300],
      registers,
    }),
    firstText: new Histogram({
      name: "parley_first_text_seconds",
      help: "Time from the start of a turn until its first text is sent to the platform",
      labelNames: ["platform"],
      buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30],
      registers,
    }),
    delivery: new Histogram({
      name: "parley_delivery_wait_seconds",
      help: "Time that calls to a platform waited for room under its limits; those sent at once are not counted",
      labelNames: ["platform", "method", "urgency"],
      buckets: [0.001, 0.01, 0.1, 0.3, 1, 3, 10, 30, 100],
      registers,
    }),
    limited: new Counter({
      name: "parley_platform_limited_total",
      help: "Calls that a platform refused as too many",
      labelNames: ["platform", "method"],
      registers,
    }),
    calls: new Counter({
      name: "parley_gateway_calls_total",
      help: "Gateway calls by operation and outcome",
      labelNames: ["operation", "outcome"],
      registers,
    }),
    tokens: new Counter({
      name: "parley_tokens_total",
      help: "Tokens reported by the gateway, or estimated when it reports none",
      labelNames: ["model", "direction"],
      registers,
    }),
    cost: new Counter({
      name: "parley_cost_usd_total",
      help: "Cost of gateway calls in US dollars",
      labelNames: ["model", "estimated"],
      registers,
    }),
  };
}
