import { expect, test } from "vitest";
import type { UsageRow } from "../../../../src/core/spending.ts";
import { toUsageSums } from "../../../../src/operations/dashboard/dashboard-data.ts";

const row = (more: Partial<UsageRow>): UsageRow => ({
  day: "2026-01-01",
  personId: "slack:T1:U1",
  model: "m",
  operation: "chat",
  calls: 1,
  promptTokens: 10,
  completionTokens: 5,
  images: 0,
  audioSeconds: 0,
  costUsd: 0.5,
  estimatedCalls: 0,
  unpricedCalls: 0,
  ...more,
});

test("sums usage up by each label, the most calls first, and days in their order", async () => {
  const sums = await toUsageSums([
    row({ day: "2026-01-02", channel: "slack:channel:C1" }),
    row({ calls: 3, personId: "discord:7", model: "other", operation: "image", images: 2 }),
    row({ channel: "slack:channel:C1", costUsd: 0.25 }),
  ]);
  expect(sums.total).toMatchObject({ calls: 5, costUsd: 1.25, promptTokens: 30, images: 2 });
  expect(sums.days.map(({ key, calls }) => [key, calls])).toEqual([
    ["2026-01-01", 4],
    ["2026-01-02", 1],
  ]);
  expect(sums.platforms.map(({ key, calls }) => [key, calls])).toEqual([
    ["discord", 3],
    ["slack", 2],
  ]);
  expect(sums.places).toMatchObject([{ key: "slack:channel:C1", calls: 2, costUsd: 0.75 }]);
  expect(sums.people.map(({ key }) => key)).toEqual(["discord:7", "slack:T1:U1"]);
  expect(sums.models.map(({ key }) => key)).toEqual(["other", "m"]);
  expect(sums.operations.map(({ key }) => key)).toEqual(["image", "chat"]);
});

test("names at most 20 people and places", async () => {
  const sums = await toUsageSums(
    Array.from({ length: 50 }, (_, n) => row({ personId: `slack:T1:U${n}`, calls: n })),
  );
  expect(sums.people).toHaveLength(20);
  expect(sums.people[0]?.key).toBe("slack:T1:U49");
  expect(sums.total.calls).toBe(1225);
});
