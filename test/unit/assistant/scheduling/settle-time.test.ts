import { expect, test } from "vitest";
import { createSettleTime } from "../../../../src/assistant/scheduling/settle-time.ts";

test("the first waits the least, also where the platform's clock is wrong", () => {
  expect(createSettleTime().after(60_000)).toBe(150);
  expect(createSettleTime().after(-60_000)).toBe(150);
});

test("waits the longer the longer the acceptance took, within bounds", () => {
  const settleTime = createSettleTime();
  expect([10, 20, 110, 60_000, 10].map((tookMs) => settleTime.after(tookMs))).toEqual([
    150, 150, 400, 1500, 150,
  ]);
});

test("the quickest of long ago does not count", () => {
  const settleTime = createSettleTime();
  settleTime.after(10);
  for (let count = 0; count < 99; count++) expect(settleTime.after(1010)).toBe(1500);
  expect(settleTime.after(1010)).toBe(150);
});

test("where messages are delivered in order, only a slow acceptance waits", () => {
  const settleTime = createSettleTime();
  expect([10, 110, 509, 510, 60_000].map((tookMs) => settleTime.after(tookMs, true))).toEqual([
    0, 0, 0, 1500, 1500,
  ]);
});
