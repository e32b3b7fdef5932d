import { expect, test } from "vitest";
import { createRateLimiter } from "../../../src/support/rate-limiter.ts";

test("a key has one minute's worth of tokens, then waits for the next", () => {
  let now = 0;
  const limiter = createRateLimiter({ maxKeys: 10, now: () => now });
  expect([limiter.take("a", 2), limiter.take("a", 2)]).toEqual([0, 0]);
  expect(limiter.take("a", 2)).toBe(30_000);
  expect(limiter.take("b", 2)).toBe(0);
  now = 30_000;
  expect(limiter.take("a", 2)).toBe(0);
  expect(limiter.take("a", 2)).toBe(30_000);
});

test("only the most recently used keys are remembered", () => {
  const limiter = createRateLimiter({ maxKeys: 2, now: () => 0 });
  for (const key of ["a", "b", "c"]) limiter.take(key, 1);
  expect(limiter.take("c", 1)).toBeGreaterThan(0);
  expect(limiter.take("a", 1)).toBe(0);
});
