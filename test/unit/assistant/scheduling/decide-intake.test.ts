import { describe, expect, it } from "vitest";
import { decideIntake, type IntakeFacts } from "../../../../src/assistant/scheduling/event-intake.ts";
import { ParleyError, type ErrorCode } from "../../../../src/core/errors.ts";

const question: IntakeFacts = { isCounted: true, comesAgain: true, isClosed: false, mayOvertake: "nothing" };
const command: IntakeFacts = { ...question, comesAgain: false };
const ofCommand: IntakeFacts = { ...question, isCounted: false };
const stopping = { isClosed: true } as const;

const no = (code: ErrorCode) => new ParleyError(code, "refused");
const [rules, room, budget, rate] = ["passed", "passed", "passed", "passed"] as const;
const all = { rules, room, budget, rate } as const;

/** The decision as a line. */
function decided(facts: IntakeFacts): string {
  const decision = decideIntake(facts);
  switch (decision.kind) {
    case "ask":
      return `ask about the ${decision.what}`;
    case "leave":
    case "deny":
    case "refuse":
      return `${decision.kind}: ${decision.error.code}`;
    case "accept":
      return decision.waitMs > 0 ? `accept, and wait ${decision.waitMs} ms for earlier ones` : "accept";
  }
}

describe("an event that comes", () => {
  it.each<[string, IntakeFacts, string]>([
    ["is first asked about at the rules", question, "ask about the rules"],
    [
      "is denied where they do not allow it",
      { ...question, rules: no("access-denied") },
      "deny: access-denied",
    ],
    ["then needs room", { ...question, rules }, "ask about the room"],
    ["is refused where there is none", { ...question, rules, room: no("busy") }, "refuse: busy"],
    ["then costs something", { ...question, rules, room }, "ask about the budget"],
    [
      "is refused where that is spent",
      { ...question, rules, room, budget: no("over-budget") },
      "refuse: over-budget",
    ],
    ["is counted last", { ...question, rules, room, budget }, "ask about the rate"],
    ["is refused as one too many", { ...question, ...all, rate: no("rate-limited") }, "refuse: rate-limited"],
    ["is accepted when all has passed", { ...question, ...all }, "accept"],
    [
      "waits where earlier ones may still come",
      { ...question, ...all, mayOvertake: "others" },
      "accept, and wait 150 ms for earlier ones",
    ],
    [
      "waits longer where earlier ones are looked up",
      { ...question, ...all, mayOvertake: "missed" },
      "accept, and wait 5000 ms for earlier ones",
    ],
    [
      "is the store's duplicate where it is in flight here, and is not counted again",
      { ...question, rules, room: "known" },
      "accept",
    ],
  ])("%s", (_, facts, line) => {
    expect(decided(facts)).toBe(line);
    // It does not matter to these whether the platform delivers it again.
    expect(decided({ ...facts, comesAgain: false })).toBe(line);
  });

  it.each<[string, IntakeFacts, string]>([
    ["is not counted", { ...ofCommand, rules, room }, "accept"],
    ["may be denied", { ...ofCommand, rules: no("access-denied") }, "deny: access-denied"],
    ["needs room", { ...ofCommand, rules, room: no("busy") }, "refuse: busy"],
    [
      "is left while the process stops: a Retry of the command sends it again",
      { ...ofCommand, ...stopping },
      "leave: stopping",
    ],
  ])("from a command %s", (_, facts, line) => {
    expect(decided(facts)).toBe(line);
  });

  it.each<[string, IntakeFacts, string]>([
    ["a message is left to its next delivery, unasked", { ...question, ...stopping }, "leave: stopping"],
    ["a command is asked about at the rules", { ...command, ...stopping }, "ask about the rules"],
    [
      "a command may be denied",
      { ...command, ...stopping, rules: no("access-denied") },
      "deny: access-denied",
    ],
    ["a command is refused for good", { ...command, ...stopping, rules }, "refuse: stopping"],
  ])("while the process stops, %s", (_, facts, line) => {
    expect(decided(facts)).toBe(line);
  });
});
