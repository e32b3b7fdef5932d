import { expect, test } from "vitest";
import { acceptDurably } from "../../../../src/assistant/scheduling/event-intake.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { message } from "../../../support/fakes.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

const event = message("hello");
const record = { event, acceptedAt: 0, state: "open", version: 1 } as const;
const away = () => new ParleyError("store-unavailable", "away");

/** Makes an inbox whose `accept` does these things in turn, and repeats the last one. */
function inboxOf(...steps: (() => "accepted" | "duplicate")[]) {
  const calls = { count: 0 };
  return {
    calls,
    accept: async () => steps[Math.min(calls.count++, steps.length - 1)]!(),
    read: async () => [record],
  };
}
const fail = (): never => {
  throw away();
};

/** Accepts the event while this time passes, and resolves to how it ended. */
async function accepting(inbox: Parameters<typeof acceptDurably>[0], passesMs = 500) {
  const clock = createManualClock();
  const accepted = acceptDurably(inbox, event, clock).catch((error: unknown) => error);
  await clock.advance(passesMs);
  return await accepted;
}

test("a short outage is waited for", async () => {
  const inbox = inboxOf(fail, fail, () => "accepted");
  expect(await accepting(inbox)).toBe("accepted");
  expect(inbox.calls.count).toBe(3);
});

test("a longer one is told within the platforms' deadline", async () => {
  expect(await accepting(inboxOf(fail), 1600)).toMatchObject({ code: "store-unavailable" });
});

test("an attempt that failed but was written counts as accepted", async () => {
  expect(await accepting(inboxOf(fail, () => "duplicate"))).toBe("accepted");
});

test("a duplicate stays a duplicate", async () => {
  expect(await accepting(inboxOf(() => "duplicate"))).toBe("duplicate");
  const over = {
    ...inboxOf(fail, () => "duplicate"),
    read: async () => [{ ...record, state: "over" as const }],
  };
  expect(await accepting(over)).toBe("duplicate");
});

test("other errors are thrown at once", async () => {
  const inbox = inboxOf(() => {
    throw new ParleyError("stopping", "the process is stopping");
  });
  expect(await accepting(inbox, 0)).toMatchObject({ code: "stopping" });
  expect(inbox.calls.count).toBe(1);
});
