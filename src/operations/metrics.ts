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
}

interface Instruments {
  readonly registry: Registry;
  readonly turns: Histogram;
  readonly firstText: Histogram;
  readonly calls: Counter;
  readonly tokens: Counter;
  readonly cost: Counter;
}

/** Metrics of the process. prom-client is imported on first use, since it costs memory that an idle bot does not need. */
export function createMetrics({ countDataLosses }: MetricsSources = {}): Metrics {
  let loading: Promise<Instruments> | undefined;
  const instruments = (): Promise<Instruments> => (loading ??= load(countDataLosses));
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

async function load(countDataLosses: (() => number) | undefined): Promise<Instruments> {
  const { Counter, Histogram, Registry, collectDefaultMetrics } = await import("prom-client");
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  if (countDataLosses !== undefined) {
    registry.registerMetric(
      new Counter({
        name: "parley_store_data_losses_total",
        help: "How often the loss of stored data was noticed since the start",
        registers: [],
        collect() {
          this.reset();
          this.inc(countDataLosses());
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
