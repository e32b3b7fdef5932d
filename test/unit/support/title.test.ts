import { expect, test } from "vitest";
import { toTitle } from "../../../src/support/text.ts";

test("a short text is its own title, on one line", () => {
  expect(toTitle("  How do\n tides   work? ")).toBe("How do tides work?");
  expect(toTitle(" \n ")).toBe("");
});

test("a long text is cut at a word", () => {
  const title = toTitle("Please explain to me in simple words how the tides of the sea work");
  expect(title).toBe("Please explain to me in simple words how the tides of the…");
});

test("a text without spaces is cut between characters that people see", () => {
  const title = toTitle("👩‍👩‍👧‍👦".repeat(100));
  expect(title).toBe(`${"👩‍👩‍👧‍👦".repeat(59)}…`);
});
