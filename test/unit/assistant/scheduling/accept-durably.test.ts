import { afterEach, expect, test, vi } from "vitest";
import { acceptDurably } from "../../../../src/assistant/scheduling/event-intake.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { message } from "../../../support/fakes.ts";

afterEach(() => void vi.useRealTimers());

const event = message("hello");
const away = () => new ParleyError("store-unavailable", "away");

/** Makes an inbox whose `accept` does these things in turn, and repeats the last one. */
function inboxOf(...steps: (() => "accepted" | "duplicate")[]) {
  const calls = { count: 0 };
  return {
    calls,
    accept: async () => steps[Math.min(calls.count++, steps.length - 1)]!(),
    isOpen: async () => true,
  };
}
const fail = (): never => {
  throw away();
};

test("a short outage is waited for", async () => {
  const inbox = inboxOf(fail, fail, () => "accepted");
  expect(await acceptDurably(inbox, event)).toBe("accepted");
  expect(inbox.calls.count).toBe(3);
});

test("a longer one is told within the platforms' deadline", async () => {
  vi.useFakeTimers();
  const failed = expect(acceptDurably(inboxOf(fail), event)).rejects.toMatchObject({
    code: "store-unavailable",
  });
  await vi.advanceTimersByTimeAsync(1600);
  await failed;
});

test("an attempt that failed but was written counts as accepted", async () => {
  expect(
    await acceptDurably(
      inboxOf(fail, () => "duplicate"),
      event,
    ),
  ).toBe("accepted");
});

test("a duplicate stays a duplicate", async () => {
  expect(
    await acceptDurably(
      inboxOf(() => "duplicate"),
      event,
    ),
  ).toBe("duplicate");
  const closed = { ...inboxOf(fail, () => "duplicate"), isOpen: async () => false };
  expect(await acceptDurably(closed, event)).toBe("duplicate");
});

test("other errors are thrown at once", async () => {
  const inbox = inboxOf(() => {
    throw new ParleyError("stopping", "the process is stopping");
  });
  await expect(acceptDurably(inbox, event)).rejects.toMatchObject({ code: "stopping" });
  expect(inbox.calls.count).toBe(1);
});
