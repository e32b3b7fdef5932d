import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createDirectionBalance } from "../../../src/support/writing-direction.ts";
import { cpuMsOf } from "../../support/cpu-time.ts";

const balance = (...parts: readonly string[]): string => {
  const directions = createDirectionBalance();
  return parts.map((part) => directions.add(part)).join("") + directions.end();
};

describe("marks of writing direction", () => {
  test.for([
    ["open at the end", "a\u202Eb", "a\u202Eb\u202C"],
    ["open at the end of a line", "a\u2067b\nc", "a\u2067b\u2069\nc"],
    ["that close nothing", "a\u202Cb\u2069", "ab"],
    ["in pairs", "\u202Ba\u202C \u2068b\u2069", "\u202Ba\u202C \u2068b\u2069"],
    ["that cross", "\u202Ea\u2066b\u202Cc\u2069", "\u202Ea\u2066b\u2069\u202Cc"],
    ["closed from outside", "\u2066\u202Ea\u2069b", "\u2066\u202Ea\u202C\u2069b"],
  ] as const)("%s are balanced", ([, given, expected]) => {
    expect(balance(given)).toBe(expected);
    expect(balance(...Array.from(given))).toBe(expected);
    expect(balance(expected)).toBe(expected);
  });

  test("are balanced in each line, however the text is cut, and nothing else is changed", () => {
    const piece = fc.constantFrom(
      "a",
      "\n",
      ...Array.from("\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069"),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 80 }), (pieces) => {
        const text = balance(...pieces);
        expect(text).toBe(balance(pieces.join("")));
        expect(text.replaceAll(/[^a\n]/g, "")).toBe(pieces.join("").replaceAll(/[^a\n]/g, ""));
        for (const line of text.split("\n")) {
          const count = (marks: RegExp) => line.match(marks)?.length ?? 0;
          expect(count(/[\u202A\u202B\u202D\u202E]/g)).toBe(count(/\u202C/g));
          expect(count(/[\u2066-\u2068]/g)).toBe(count(/\u2069/g));
        }
      }),
    );
  });

  test("cost the same for a text of a million", async () => {
    const million = "\u202E".repeat(1_000_000);
    const work = () => expect(balance(million)).toHaveLength(100);
    expect(await cpuMsOf(work, 1)).toBeLessThan(2000);
  });
});
