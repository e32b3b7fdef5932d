import { expect, test } from "vitest";
import { createMetrics } from "../../../src/operations/metrics.ts";

const linesOf = async (metrics: ReturnType<typeof createMetrics>, name: string): Promise<string[]> =>
  (await metrics.text()).body.split("\n").filter((line) => line.startsWith(name));

test("the store's times are a histogram, by operation and outcome", async () => {
  const metrics = createMetrics();
  for (const seconds of [0.0004, 0.002, 0.002, 9])
    metrics.take({ kind: "stored", operation: "read", outcome: "ok", seconds });
  metrics.take({ kind: "stored", operation: "write", outcome: "error", seconds: 0.04 });
  const lines = await linesOf(metrics, "parley_store_seconds");
  expect(lines).toContain('parley_store_seconds_bucket{le="0.0005",operation="read",outcome="ok"} 1');
  expect(lines).toContain('parley_store_seconds_bucket{le="0.0025",operation="read",outcome="ok"} 3');
  expect(lines).toContain('parley_store_seconds_bucket{le="5",operation="read",outcome="ok"} 3');
  expect(lines).toContain('parley_store_seconds_bucket{le="+Inf",operation="read",outcome="ok"} 4');
  expect(lines).toContain('parley_store_seconds_count{operation="read",outcome="ok"} 4');
  expect(lines).toContain('parley_store_seconds_sum{operation="write",outcome="error"} 0.04');
});

test("gauges are read when they are asked for", async () => {
  const load = { turns: { running: 2, waiting: 1 }, gatewayCalls: { running: 3, waiting: 4 } };
  const metrics = createMetrics(() => ({
    version: "1.2.3",
    load: () => load,
    storeBytes: async () => 4096,
    httpConnections: () => 7,
    partsReady: async () => ({ store: true, gateway: false }),
  }));
  expect(await linesOf(metrics, "parley_")).toEqual(
    expect.arrayContaining([
      `parley_build_info{version="1.2.3",node="${process.versions.node}"} 1`,
      "parley_turns_running 2",
      "parley_turns_waiting 1",
      "parley_gateway_calls_running 3",
      "parley_gateway_calls_waiting 4",
      "parley_store_bytes 4096",
      "parley_http_connections 7",
      'parley_part_ready{part="store"} 1',
      'parley_part_ready{part="gateway"} 0',
    ]),
  );
  load.turns.running = 0;
  expect(await linesOf(metrics, "parley_turns_running")).toEqual(["parley_turns_running 0"]);
});

test("a size that is not known is left out", async () => {
  const metrics = createMetrics(() => ({ storeBytes: async () => undefined }));
  expect(await linesOf(metrics, "parley_store_bytes")).toEqual([]);
});

test("waits and refusals are counted by why", async () => {
  const metrics = createMetrics();
  metrics.take({ kind: "retried", operation: "chat", code: "gateway-rate-limited", seconds: 2 });
  metrics.take({ kind: "refused", platform: "slack", code: "rate-limited" });
  metrics.take({ kind: "rated", platform: "slack", rating: "good", model: "m" });
  await metrics.text();
  expect(await linesOf(metrics, "parley_gateway_retry_wait_seconds_sum")).toEqual([
    'parley_gateway_retry_wait_seconds_sum{operation="chat",code="gateway-rate-limited"} 2',
  ]);
  expect(await linesOf(metrics, "parley_ratings_total")).toEqual([
    'parley_ratings_total{platform="slack",rating="good",model="m"} 1',
  ]);
  expect(await linesOf(metrics, "parley_refusals_total")).toEqual([
    'parley_refusals_total{platform="slack",code="rate-limited"} 1',
  ]);
});

// Attack: A gateway that makes up another model's name for each answer. What holds: 200 names in
// the metrics, then `other`.
test("names of models that a gateway makes up do not make the metrics grow without end", async () => {
  const metrics = createMetrics();
  const usage = { promptTokens: 1, costUsd: 0.01, isEstimated: false };
  const asked = { kind: "asked", operation: "chat", outcome: "stop", usage, seconds: 1 } as const;
  for (let index = 0; index < 5000; index += 1)
    metrics.take({ ...asked, model: `made-up-${index}${"x".repeat(9000)}` });
  metrics.take({ ...asked, model: "made-up-later" });
  metrics.take({ kind: "rated", platform: "slack", rating: "good", model: "made-up-later" });
  const { body } = await metrics.text();
  expect(body.length).toBeLessThan(200_000);
  expect(body).toContain('parley_tokens_total{model="other",direction="in"} 4801');
  expect(body).toContain('model="other"} 1');
});
