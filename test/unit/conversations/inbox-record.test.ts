import { expect, test } from "vitest";
import { keptMs } from "../../../src/conversations/inbox-record.ts";

const dayMs = 24 * 60 * 60 * 1000;

test("an answered event is kept as long as its message, which expires from its acceptance; a day at least", () => {
  const now = Date.now();
  const left = (ageDays: number) => keptMs({ acceptedAt: now - ageDays * dayMs }, 30 * dayMs) / dayMs;
  expect(left(0)).toBeCloseTo(30, 3);
  // A new answer does not keep the question any longer.
  expect(left(20)).toBeCloseTo(10, 3);
  expect(left(29.5)).toBe(1);
  expect(keptMs({ acceptedAt: now })).toBeGreaterThan(10 * 365 * dayMs);
});
