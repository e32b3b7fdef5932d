import { describe, expect, it } from "vitest";
import { createSteadyClock } from "../../../src/support/clock.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const start = Date.UTC(2026, 10, 21);

function setUp() {
  const at = { elapsedMs: 0, stepMs: 0 };
  const clock = createSteadyClock({
    wall: () => start + at.elapsedMs + at.stepMs,
    monotonic: () => 500 + at.elapsedMs,
  });
  return { at, clock };
}

describe.each([11 * minuteMs, dayMs, -dayMs, 73 * 365 * dayMs])("a step of %i ms", (stepMs) => {
  it("does not count for an hour", () => {
    const { at, clock } = setUp();
    expect(clock.now()).toBe(start);
    at.stepMs = stepMs;
    for (at.elapsedMs = 0; at.elapsedMs < 59 * minuteMs; at.elapsedMs += minuteMs) {
      const [right, wrong] = [start + at.elapsedMs, start + at.elapsedMs + stepMs];
      expect(clock.now()).toBe(right);
      expect(clock.earliest()).toBe(Math.min(right, wrong));
      expect(clock.latest()).toBe(Math.max(right, wrong));
    }
  });

  it("never counts when it is taken back before", () => {
    const { at, clock } = setUp();
    at.stepMs = stepMs;
    clock.now();
    at.elapsedMs = 50 * minuteMs;
    expect(clock.now()).toBe(start + at.elapsedMs);
    at.stepMs = 0;
    for (; at.elapsedMs < 200 * minuteMs; at.elapsedMs += minuteMs) {
      expect(clock.now()).toBe(start + at.elapsedMs);
      expect(clock.earliest()).toBe(clock.latest());
    }
  });

  it("counts when it has been seen for an hour", () => {
    const { at, clock } = setUp();
    at.stepMs = stepMs;
    // Nobody looked for a day, so it may have stepped just now.
    at.elapsedMs = dayMs;
    expect(clock.now()).toBe(start + at.elapsedMs);
    at.elapsedMs += 60 * minuteMs;
    expect(clock.now()).toBe(start + at.elapsedMs + stepMs);
    expect(clock.earliest()).toBe(clock.latest());
  });
});

it("a clock that is corrected slowly counts at once", () => {
  const { at, clock } = setUp();
  for (let minute = 0; minute < 1000; minute++) {
    at.elapsedMs += minuteMs;
    at.stepMs -= 30;
    expect(clock.now()).toBe(start + at.elapsedMs + at.stepMs);
  }
});

it("each of several steps begins the hour anew", () => {
  const { at, clock } = setUp();
  for (let minute = 0; minute < 180; minute += 30) {
    at.elapsedMs += 30 * minuteMs;
    at.stepMs += dayMs;
    expect(clock.now()).toBe(start + at.elapsedMs);
  }
});
