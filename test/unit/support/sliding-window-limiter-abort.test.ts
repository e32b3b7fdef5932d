import { expect, it } from "vitest";
import { createSlidingWindowLimiter } from "../../../src/support/rate-limiter.ts";

it("a call that waits for its turn is not made once it has been called off, and takes nothing of the limit", async () => {
  const pace = createSlidingWindowLimiter({ max: 1, windowMs: 60_000, reserved: 0 });
  await pace.take();
  const left = new AbortController();
  const waiting = pace.take(left.signal);
  const refused = expect(waiting).rejects.toThrow("somebody else goes on");
  left.abort(new Error("somebody else goes on"));
  await refused;
  await expect(pace.take(left.signal)).rejects.toThrow("somebody else goes on");
  expect(pace.tryTake()).toBe(false);
});
