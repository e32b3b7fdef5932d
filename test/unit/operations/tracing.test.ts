import { createHash } from "node:crypto";
import { INVALID_SPANID, ROOT_CONTEXT, SpanKind } from "@opentelemetry/api";
import * as sdk from "@opentelemetry/sdk-trace";
import { expect, it } from "vitest";
import { createSampler } from "../../../src/operations/tracing.ts";

/** How many of 1,000 traces are taken. */
function takenBy(name: Parameters<typeof createSampler>[1], share: number): number {
  const sampler = createSampler(sdk, name, share);
  const ids = Array.from({ length: 1000 }, (_, n) => createHash("md5").update(`${n}`).digest("hex"));
  return ids.filter(
    (id) =>
      sampler.shouldSample(ROOT_CONTEXT, id, INVALID_SPANID, SpanKind.INTERNAL, {}, []).decision ===
      sdk.SamplingDecision.RECORD_AND_SAMPLED,
  ).length;
}

it.each([
  ["always_on", 0, 1000],
  ["always_off", 1, 0],
  ["parentbased_always_on", 0, 1000],
  ["parentbased_always_off", 1, 0],
  ["traceidratio", 0, 0],
  ["parentbased_traceidratio", 1, 1000],
] as const)("OTEL_TRACES_SAMPLER=%s with %s takes %i of 1,000 traces", (name, share, taken) => {
  expect(takenBy(name, share)).toBe(taken);
});

it.each(["traceidratio", "parentbased_traceidratio"] as const)("%s with 0.1 takes a tenth", (name) => {
  expect(takenBy(name, 0.1)).toBeGreaterThan(50);
  expect(takenBy(name, 0.1)).toBeLessThan(150);
});
