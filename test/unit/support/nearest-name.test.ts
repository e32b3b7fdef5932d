import fc from "fast-check";
import { expect, test } from "vitest";
import { nearestName } from "../../../src/support/text.ts";

const names = ["openai/gpt-4o-mini", "gemini-2.5-flash", "whisper-1", "GPT-4O"];

test.each([
  ["gpt-4o", "GPT-4O"],
  ["gpt-4o-mini", "openai/gpt-4o-mini"],
  ["gemini-2.5-flsh", "gemini-2.5-flash"],
  ["whisper", "whisper-1"],
  ["gem", "gemini-2.5-flash"],
])("%s is taken for %s", (wanted, expected) => {
  expect(nearestName(wanted, names)).toBe(expected);
});

test("nothing near is no suggestion, and a name is not suggested for itself", () => {
  expect(nearestName("claude", names)).toBeUndefined();
  expect(nearestName("whisper-1", ["whisper-1"])).toBeUndefined();
  expect(nearestName("", names)).toBeUndefined();
});

test("any name, however long, gets an answer", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 20_000 }), fc.array(fc.string()), (wanted, others) => {
      const found = nearestName(wanted, others);
      expect(found === undefined || (others.includes(found) && found !== wanted)).toBe(true);
    }),
  );
});
