import { expect, test } from "vitest";
import { keptMs } from "../../../src/conversations/inbox-record.ts";

const dayMs = 24 * 60 * 60 * 1000;

test("an answered event is kept for a week and no longer than its message, which expires from its acceptance; a day at least", () => {
  const now = Date.now();
  const left = (ageDays: number) => keptMs({ acceptedAt: now - ageDays * dayMs }, 30 * dayMs) / dayMs;
  expect(left(0)).toBe(7);
  // A new answer does not keep the question any longer.
  expect(left(26)).toBeCloseTo(4, 3);
  expect(left(29.5)).toBe(1);
  expect(keptMs({ acceptedAt: now })).toBe(7 * dayMs);
});
