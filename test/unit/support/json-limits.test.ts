import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isExcessiveJson } from "../../../src/support/json-limits.ts";

describe("isExcessiveJson", () => {
  it("is false for ordinary JSON of any content", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 20 }), fc.string(), (json, text) => {
        const padded = JSON.stringify({
          pad: `${"x".repeat(2000)}${text}[[[{{{,,,\\"`,
          json: JSON.parse(json),
        });
        expect(isExcessiveJson(padded)).toBe(false);
      }),
    );
  });

  it("is true for deep nesting and for very many values", () => {
    expect(isExcessiveJson("[".repeat(2000))).toBe(true);
    expect(isExcessiveJson('{"a":'.repeat(500))).toBe(true);
    expect(isExcessiveJson(`[${"0,".repeat(1_100_000)}0]`)).toBe(true);
  });

  it.each(["[", '"', '\\"', '"\\\\', "{}", ",", '""'])("takes linear time (%j)", (bit) => {
    const time = (repeats: number) => {
      const text = `["${bit.repeat(repeats)}`;
      const startedAt = performance.now();
      isExcessiveJson(text);
      return performance.now() - startedAt;
    };
    time(10_000);
    expect(time(1_000_000)).toBeLessThan(1000);
  });
});
