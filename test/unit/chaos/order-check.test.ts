import { expect, test } from "vitest";
import type { Outcome } from "../../chaos/account/outcomes.ts";
import { findDisorder } from "../../chaos/account/order-check.ts";
import type { FaultKind } from "../../chaos/fault-windows.ts";

const sentAt = 1_000_000;

/**
 * A message in direct messages on Slack.
 * @param place its place among the stored messages, from 0
 * @param clockMs how wrong the clock of the process is that accepted it
 */
function outcomeOf(
  label: string,
  acceptedAfterMs: number,
  place: number,
  { clockMs = 0, acknowledgedAfterMs = 0 } = {},
): Outcome {
  const secret = `hush${label.slice(1)}x`;
  const message = (text: string) => ({ role: "user", parts: [{ kind: "text", text }] });
  const history = [message("other"), message("other")].with(
    place,
    message(`please say ${label} (${secret})`),
  );
  return {
    sent: {
      label,
      secret,
      edits: [],
      conversation: "slack D1",
      platform: "slack",
      kind: "direct",
      keys: [],
      sentAt,
      refusal: () => undefined,
      isRedelivered: () => false,
      deliveries: () => [],
      acknowledgedAfterMs: () => Math.max(acceptedAfterMs, acknowledgedAfterMs),
    },
    entry: { acceptedAt: sentAt + acceptedAfterMs + clockMs },
    answers: [],
    isAnswered: true,
    retry: undefined,
    refusal: undefined,
    history,
    kept: [],
  } as unknown as Outcome;
}

test.each<[string, number, FaultKind | undefined, boolean, number?]>([
  ["without a fault", 540, undefined, true],
  ["without a fault by a clock that is wrong", 540, undefined, true, 20 * 60_000],
  ["in one that was paused, by a clock that is wrong", 2500, "paused", false, 20 * 60_000],
  ["in one that was paused, by a clock that was set back", 2500, "paused", false, -20 * 60_000],
  ["in an instance that was paused", 2500, "paused", false],
  ["in an instance that has just started", 540, "process", false],
  ["in one that took longer than its first look-ups", 1500, "process", true],
  ["beside a fault of a platform", 540, "platform", true],
])("a message that was accepted late %s", (_, afterMs, fault, isProblem, clockMs) => {
  const outcomes = [outcomeOf("#e1", afterMs, 1, { clockMs }), outcomeOf("#e2", 40, 0)];
  const had = (kinds: readonly FaultKind[]) => fault !== undefined && kinds.includes(fault);
  expect(findDisorder(outcomes, [], { had }).length > 0).toBe(isProblem);
});

test("a message that was accepted in time is not excused by a pause before its acknowledgement", () => {
  const outcomes = [outcomeOf("#e1", 30, 1, { acknowledgedAfterMs: 2500 }), outcomeOf("#e2", 40, 0)];
  expect(findDisorder(outcomes, [], { had: () => true })).not.toEqual([]);
});
