import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anchorOf, createJoiner } from "../../../../src/assistant/turn/join-continuation.ts";

function join(before: string, rest: string, pieceChars = 7): string | undefined {
  const joiner = createJoiner(before);
  for (let from = 0; from < rest.length; from += pieceChars) joiner.add(rest.slice(from, from + pieceChars));
  return joiner.end();
}

const long =
  "The harbour lies to the north of the old town, behind the warehouses that were built after the great fire.";

describe("a continuation", () => {
  test.each([
    ["in the middle of a word", "The quick bro", "wn fox", "The quick brown fox"],
    ["at a space", "The quick brown", " fox", "The quick brown fox"],
    ["after a space", "The quick brown ", "fox", "The quick brown fox"],
    ["at a line break", "One.\n", "\nTwo.", "One.\n\nTwo."],
    ["with one repeated word", "The quick brown", "brown fox", "The quick brown fox"],
    ["with repeated words", "The quick brown fox", "brown fox jumps", "The quick brown fox jumps"],
    ["with its anchor", long, `${anchorOf(long)} Then it rained.`, `${long} Then it rained.`],
    ["with a blank line and its anchor", long, `\n${anchorOf(long)} Then.`, `${long} Then.`],
    ["in code, like the line before", "```js\n  }\n", "  }\n}\n", "```js\n  }\n  }\n}\n"],
    ["in code that is opened again", "```js\nconst a =", "```js\n 1;\n```", "```js\nconst a = 1;\n```"],
    ["in code that is closed", "```js\na();\n", "```\nDone.", "```js\na();\n```\nDone."],
    ["of one letter", "It is a", "a fox", "It is a fox"],
    ["like the word's end", "banana", "na", "bananana"],
    ["with emoji", "Ready 🚀", "🚀🚀", "Ready 🚀🚀🚀"],
  ])("%s has no seam", (_where, before, rest, whole) => {
    expect(join(before, rest)).toBe(whole);
    expect(join(before, rest, 1)).toBe(whole);
    expect(join(before, rest, 1000)).toBe(whole);
  });

  test("of nothing is nothing", () => {
    expect(createJoiner("words").end()).toBeUndefined();
  });

  test("that repeats its anchor is joined exactly, wherever a text was cut", () => {
    const text = fc.string({
      unit: fc.constantFrom("a", "bc", " ", "\n", "1", ".", "ü", "🚀"),
      minLength: 120,
      maxLength: 400,
    });
    fc.assert(
      fc.property(text, fc.nat(), (whole, at) => {
        const cut = 100 + (at % (whole.length - 100));
        const before = whole.slice(0, cut).replace(/[\uD800-\uDBFF]$/, "");
        fc.pre(/\w/.test(anchorOf(before)) && before.trim() !== "");
        expect(join(before, anchorOf(before) + whole.slice(before.length))).toBe(whole);
      }),
    );
  });
});
