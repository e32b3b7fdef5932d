import type { Counter, Histogram, Registry } from "prom-client";
import type { Meter } from "../core/telemetry.ts";
import { addSources, type MetricsSources } from "./metric-sources.ts";

/** A {@link Meter} whose values can be exported. */
export interface Metrics extends Meter {
  /** Notes that a failed gateway call is repeated after so many seconds. */
  gatewayRetry(labels: { readonly operation: string; readonly code: string }, seconds: number): void;
  /** Returns all metrics in the Prometheus text format. */
  text(): Promise<{ readonly body: string; readonly contentType: string }>;
}

interface Instruments {
  readonly registry: Registry;
  readonly turns: Histogram;
  readonly firstText: Histogram;
  readonly delivery: Histogram;
  readonly limited: Counter;
  readonly calls: Counter;
  readonly retries: Histogram;
  readonly rated: Counter;
  readonly refused: Counter;
  readonly tokens: Counter;
  readonly cost: Counter;
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

/** Creates the process's metrics. prom-client is imported on first use, since it costs an idle bot memory. */
export function createMetrics(sources: MetricsSources = {}): Metrics {
  let loading: Promise<Instruments> | undefined;
  const labelOf = createModelLabels();
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
    rated(labels) {
      record(({ rated }) => {
        rated.inc({ ...labels, model: labelOf(labels.model) });
      });
    },
    refused(labels) {
      record(({ refused }) => {
        refused.inc(labels);
      });
    },
    gatewayRetry(labels, seconds) {
      record(({ retries }) => {
        retries.observe(labels, seconds);
      });
    },
    call({ operation, outcome, model: answered }, usage) {
      const model = labelOf(answered);
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

async function load(sources: MetricsSources): Promise<Instruments> {
  const prom = await import("prom-client");
  const { Counter, Histogram } = prom;
  const registry = new prom.Registry();
  prom.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: loopDelayEveryMs });
  addSources(prom, registry, sources);
  const registers = [registry];
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
    retries: new Histogram({
      name: "parley_gateway_retry_wait_seconds",
      help: "Time until a failed gateway call was repeated, by why it had failed (gateway-rate-limited, …)",
      labelNames: ["operation", "code"],
      buckets: [0.1, 0.3, 1, 3, 10, 30, 100],
      registers,
    }),
    rated: new Counter({
      name: "parley_ratings_total",
      help: "Ratings of answers by people, changed ones included",
      labelNames: ["platform", "rating", "model"],
      registers,
    }),
    refused: new Counter({
      name: "parley_refusals_total",
      help: "Requests that were not taken, or were given up (too-old; busy, rate-limited, over-budget, access-denied, store-unavailable, …)",
      labelNames: ["platform", "code"],
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
