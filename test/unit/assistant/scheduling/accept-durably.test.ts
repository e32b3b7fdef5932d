import { afterEach, expect, test, vi } from "vitest";
import { acceptDurably } from "../../../../src/assistant/scheduling/event-intake.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createRecent } from "../../../../src/support/recent.ts";
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
  expect(await acceptDurably(inbox, event, createRecent(9))).toBe("accepted");
  expect(inbox.calls.count).toBe(3);
});

test("a longer one is told within the platforms' deadline", async () => {
  vi.useFakeTimers();
  const failed = expect(acceptDurably(inboxOf(fail), event, createRecent(9))).rejects.toMatchObject({
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
      createRecent(9),
    ),
  ).toBe("accepted");
});

test("an attempt that failed and was written counts as accepted although the platform passes the event in again", async () => {
  vi.useFakeTimers();
  const uncertain = createRecent(9);
  const failed = expect(acceptDurably(inboxOf(fail), event, uncertain)).rejects.toThrow("away");
  await vi.advanceTimersByTimeAsync(1600);
  await failed;
  const back = inboxOf(() => "duplicate");
  expect(await acceptDurably(back, event, uncertain)).toBe("accepted");
});

test("a duplicate stays a duplicate", async () => {
  expect(
    await acceptDurably(
      inboxOf(() => "duplicate"),
      event,
      createRecent(9),
    ),
  ).toBe("duplicate");
  const closed = { ...inboxOf(fail, () => "duplicate"), isOpen: async () => false };
  expect(await acceptDurably(closed, event, createRecent(9))).toBe("duplicate");
});

test("other errors are thrown at once", async () => {
  const inbox = inboxOf(() => {
    throw new ParleyError("stopping", "the process is stopping");
  });
  await expect(acceptDurably(inbox, event, createRecent(9))).rejects.toMatchObject({ code: "stopping" });
  expect(inbox.calls.count).toBe(1);
});
