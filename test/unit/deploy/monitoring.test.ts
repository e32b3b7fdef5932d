import { readFile } from "node:fs/promises";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createDashboard } from "../../../deploy/grafana-dashboard.ts";
import type { Measured } from "../../../src/core/telemetry.ts";
import type { MetricsSources } from "../../../src/operations/metrics.ts";
import { createMetrics } from "../../../src/operations/metrics.ts";
import { parsePromql } from "./promql.ts";

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}

/** Prometheus itself adds these to each series, and has `up`. */
const ownLabels = ["job", "instance"];
const ownMetrics = new Map([["up", new Set(ownLabels)]]);

/** Returns every metric that a bot exports. Each source is given, and each instrument is used once. */
async function readMetrics(): Promise<Map<string, Set<string>>> {
  const sources: Required<MetricsSources> = {
    version: "1.2.3",
    countWrites: () => ({ commits: 0, syncs: 0 }),
    storeBytes: async () => 1,
    deliveryWaiting: () => [{ platform: "slack", method: "chat.update", urgency: "final", count: 1 }],
    connections: () => [{ platform: "discord", connection: "shard 0", isReady: true }],
    partsReady: async () => ({ store: true }),
    httpConnections: () => 1,
    load: () => ({ turns: { running: 1, waiting: 1 }, gatewayCalls: { running: 1, waiting: 1 } }),
  };
  const metrics = createMetrics(() => sources);
  const usage = { promptTokens: 1, completionTokens: 1, costUsd: 1, isEstimated: false };
  const happened: readonly Measured[] = [
    { kind: "accepted", platform: "slack" },
    { kind: "reconnected", platform: "slack" },
    { kind: "stored", operation: "read", outcome: "ok", seconds: 0.001 },
    { kind: "turn", platform: "slack", event: "message", outcome: "complete", seconds: 1 },
    { kind: "first-text", platform: "slack", seconds: 1 },
    { kind: "delivered", platform: "slack", method: "chat.update", urgency: "final", seconds: 1 },
    { kind: "limited", platform: "slack", method: "chat.update" },
    { kind: "rated", platform: "slack", rating: "good", model: "m" },
    { kind: "refused", platform: "slack", code: "busy" },
    { kind: "retried", operation: "chat", code: "gateway-rate-limited", seconds: 1 },
    { kind: "asked", operation: "chat", outcome: "stop", model: "m", usage, seconds: 1 },
    { kind: "charged", model: "m", usage },
  ];
  for (const event of happened) metrics.take(event);
  const { body } = await metrics.text();
  const found = new Map(ownMetrics);
  for (const line of body.split("\n")) {
    const [, name, labels = ""] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = found.get(name) ?? new Set(ownLabels);
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label!);
    found.set(name, known);
  }
  return found;
}

let known: Map<string, Set<string>>;
beforeAll(async () => {
  known = await readMetrics();
});

function problemsOf(expression: string): string[] {
  const { metrics, groupedBy } = parsePromql(expression);
  expect(metrics, expression).not.toEqual([]);
  const labels = new Set(metrics.flatMap(({ name }) => [...(known.get(name) ?? [])]));
  return [
    ...metrics.flatMap(({ name, matchers }) => {
      const own = known.get(name);
      if (own === undefined) return [`there is no metric ${name}`];
      return matchers
        .filter(({ label }) => !own.has(label))
        .map(({ label }) => `${name} has no label ${label}`);
    }),
    ...groupedBy.filter((label) => !labels.has(label)).map((label) => `nothing has a label ${label}`),
  ];
}

describe("the dashboard", () => {
  test("reads metrics and labels that there are, in panels with unique ids", () => {
    const dashboard = createDashboard();
    const expressions = dashboard.panels.flatMap((panel) =>
      "targets" in panel ? panel.targets.map(({ expr }) => expr) : [],
    );
    expect(expressions.length).toBeGreaterThan(25);
    expect(expressions.flatMap((expression) => problemsOf(expression))).toEqual([]);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  });

  test("shows every metric of Parley's own", () => {
    const text = JSON.stringify(createDashboard());
    const names = [...known.keys()]
      .filter((name) => name.startsWith("parley_"))
      .map((name) => name.replace(/_(bucket|sum|count)$/, ""));
    expect([...new Set(names)].filter((name) => !text.includes(name))).toEqual([]);
  });
});

describe("the alerts", () => {
  test("read metrics and labels that there are, and say what is wrong, how bad it is and what to do", async () => {
    const { groups } = parse(await readFile("deploy/prometheus-alerts.yaml", "utf8")) as {
      readonly groups: readonly { readonly rules: readonly Rule[] }[];
    };
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.flatMap(({ expr }) => problemsOf(expr))).toEqual([]);
    for (const { alert, labels, annotations, for: wait = "0m" } of rules) {
      expect(alert).toMatch(/^Parley[A-Z]\w+$/);
      expect(["warning", "critical"], alert).toContain(labels.severity);
      expect(annotations.summary, alert).not.toBe("");
      expect(annotations.description, alert).toMatch(/\w+\.$/);
      expect(wait, alert).toMatch(/^\d+[mh]$/);
    }
  });

  test.each([
    ["parley_no_such_metric > 0", "there is no metric parley_no_such_metric"],
    ['parley_part_ready{name="store"} == 0', "parley_part_ready has no label name"],
    ["sum by (state) (parley_turns_running)", "nothing has a label state"],
  ])("would be refused: %s", (expression, problem) => {
    expect(problemsOf(expression)).toEqual([problem]);
  });

  test("that are not PromQL are refused", () => {
    expect(() => parsePromql("sum(parley_turns_running")).toThrow("not PromQL");
  });
});
