import { expect, test } from "vitest";
import { createSlidingWindowLimiter } from "../../../src/support/rate-limiter.ts";

function createTime() {
  let now = 0;
  return {
    now: () => now,
    sleep: (ms: number) => {
      now += ms;
      return Promise.resolve();
    },
  };
}

test("lets through no more than the limit in any window", async () => {
  const time = createTime();
  const pace = createSlidingWindowLimiter({ max: 3, windowMs: 1000, reserved: 0, ...time });
  const at: number[] = [];
  for (let i = 0; i < 10; i += 1) {
    await pace.take();
    at.push(time.now());
  }
  for (const start of at)
    expect(at.filter((one) => one >= start && one < start + 1000).length).toBeLessThanOrEqual(3);
});

test("what need not be made leaves room for what must", async () => {
  const time = createTime();
  const pace = createSlidingWindowLimiter({ max: 3, windowMs: 1000, reserved: 1, ...time });
  expect([pace.tryTake(), pace.tryTake(), pace.tryTake()]).toEqual([true, true, false]);
  await pace.take();
  expect(time.now()).toBe(0);
  await pace.take();
  expect(time.now()).toBeGreaterThan(1000);
});
