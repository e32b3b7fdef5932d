import { expect, test } from "vitest";
import {
  remedyOf,
  toFindings,
  type FindingFacts,
} from "../../../../src/operations/dashboard/dashboard-data.ts";
import { inLanguage } from "../../../../src/words/translate.ts";

const facts = (more: Partial<FindingFacts> = {}): FindingFacts => ({
  parts: { store: { status: "ready" }, gateway: { status: "ready" }, slack: { status: "ready" } },
  gateway: "ready",
  turns: 10,
  failed: 0,
  full: [],
  ...more,
});

test("finds nothing where all is well, a single failure included", () => {
  expect(toFindings(facts({ failed: 1, turns: 1 }))).toEqual([]);
  expect(toFindings(facts({ failed: 9, turns: 100 }))).toEqual([]);
  expect(toFindings(facts({ failed: 19, turns: 100 }))).toHaveLength(1);
});

test("says what is wrong with each part and what to do, the worst first", () => {
  const found = toFindings(
    facts({
      parts: {
        store: { status: "ready" },
        gateway: { status: "degraded", state: "key-refused" },
        discord: { status: "degraded", state: "failed" },
        slack: { status: "not-ready", state: "connecting" },
      },
      gateway: "key-refused",
      failed: 9,
    }),
  );
  expect(found.map(({ level, text }) => [level, text])).toEqual([
    ["wrong", "slack is not connected."],
    ["warning", "The model gateway does not accept the key."],
    ["warning", "discord does not accept Parley's token."],
  ]);
  expect(found[1]?.remedy).toContain("GATEWAY_API_KEY");
});

test("notices answers that fail although every part works", () => {
  expect(toFindings(facts({ failed: 3 }))).toMatchObject([
    { level: "warning", text: "3 of 10 answers failed in the last hour." },
  ]);
});

test("warns of a budget, a disk or a queue that is nearly full, and of nothing that is free again soon", () => {
  const found = toFindings(
    facts({
      full: [
        { kind: "budget", used: 4.6, limit: 5, unit: "usd" },
        { kind: "disk", used: 50, limit: 100, unit: "bytes" },
        { kind: "calls", used: 8, limit: 8, unit: "count" },
        { kind: "person-budget", used: 1, limit: 1, unit: "usd" },
        { kind: "delivery", name: "slack", used: 500, limit: 500, unit: "count" },
        { kind: "store", used: 1e12, unit: "bytes" },
      ],
    }),
  );
  expect(found.map(({ text }) => text)).toEqual([
    "92% of today's budget is spent.",
    "Messages wait for the limits of slack: 100% of the queue is taken.",
  ]);
  const closed = [{ kind: "budget", used: 0, limit: 0, unit: "usd" }] as const;
  expect(toFindings(facts({ full: closed }))).toHaveLength(1);
});

test("says it in the language of the person", () => {
  inLanguage("de", () => {
    expect(toFindings(facts({ failed: 3 }))[0]?.text).toContain("3 von 10 Antworten");
    expect(remedyOf("gateway-payment")).toContain("Guthaben");
  });
  expect(remedyOf("attachment-gone")).toBeUndefined();
  expect(remedyOf("toString")).toBeUndefined();
});
