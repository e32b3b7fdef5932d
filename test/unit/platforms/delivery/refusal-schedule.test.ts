import { describe, expect, test } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createRefusalSchedule } from "../../../../src/platforms/delivery/receive-patiently.ts";

describe("when refusals are repeated", () => {
  const denied = new ParleyError("access-denied", "refused");
  const overRate = (retryAfterMs: number) => new ParleyError("rate-limited", "refused", { retryAfterMs });

  test("a refusal by the rules is told again after its interval, to each person and for each reason", () => {
    let now = 1000;
    const schedule = createRefusalSchedule(() => now);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(false);
    expect(schedule.isDue(denied, "bo", 600_000)).toBe(true);
    expect(schedule.isDue(overRate(40_000), "ana", 600_000)).toBe(true);
    now += 599_999;
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(false);
    now += 1;
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
  });

  test("what could not be told is due again", () => {
    const schedule = createRefusalSchedule(() => 0);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
    schedule.untold(denied, "ana");
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
  });

  test.each([
    ["when it is free again", 40_000, 40_000],
    ["after 30 seconds at the earliest", 100, 30_000],
    ["after ten minutes at the latest", 24 * 3_600_000, 600_000],
  ])("a person over a limit is told again %s", (_when, retryAfterMs, expectedMs) => {
    let now = 1000;
    const schedule = createRefusalSchedule(() => now);
    const isTold = () => schedule.isDue(overRate(retryAfterMs), "ana", 1);
    expect(isTold()).toBe(true);
    now += expectedMs - 1;
    expect(isTold()).toBe(false);
    now += 1;
    expect(isTold()).toBe(true);
  });
});
