import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { committablePrefix, hasLink } from "../../../../src/platforms/slack/committable-prefix.ts";
import { escapeMarkdown } from "../../../../src/platforms/slack/escape-markdown.ts";

describe("committablePrefix", () => {
  test.each([
    ["The meeting mov", "The meeting mov"],
    ["The meeting moves. ", "The meeting moves. "],
    ["It is **very", "It is "],
    ["It is **very** good ", "It is **very** good "],
    ["It is *very", "It is "],
    ["Call `f(a, ", "Call "],
    ["Call `f(a_b*c)` now ", "Call `f(a_b*c)` now "],
    ["See [the page", "See "],
    ["See [the page]", "See "],
    ["See [1] and ", "See [1] and "],
    ["snake_case_name and ", "snake_case_name and "],
    ["* one\n* two ", "* one\n* two "],
    ["2 * 3 is ", "2 * 3 is "],
    ["Look:\n\n```js\nlet a", "Look:\n\n"],
    ["Look:\n\n```js\nlet a\n```", "Look:\n\n"],
    ["Look:\n\n```js\nlet a\n```\n", "Look:\n\n"],
    ["Look:\n\n```js\nlet a\n```\nAnd on ", "Look:\n\n```js\nlet a\n```\nAnd on "],
    ["Table:\n\n|a|b|\n|-|-|\n|1|2", "Table:\n\n"],
    ["Table:\n\n|a|b|\n|-|-|\n|1|2|\n\nAfter ", "Table:\n\n|a|b|\n|-|-|\n|1|2|\n\nAfter "],
    ["unclosed **here\n\nand on ", "unclosed **here\n\nand on "],
    ["", ""],
  ])("of %j is %j", (markdown, expected) => {
    expect(committablePrefix(markdown)).toBe(expected);
  });

  test("of a growing text grows by appending, also escaped", () => {
    const words = fc.constantFrom(
      "a ",
      "b",
      "**",
      "*",
      "_",
      "`",
      "```\n",
      "~~",
      "\n",
      "\n\n",
      "|x|",
      "> ",
      "[",
      "]",
      "<!here>",
      "&",
      "- ",
    );
    fc.assert(
      fc.property(fc.array(words, { maxLength: 30 }), (parts) => {
        let text = "";
        let sent = "";
        for (const part of parts) {
          text += part;
          const prefix = committablePrefix(text);
          expect(text.startsWith(prefix)).toBe(true);
          // What is held back later than it was sent stays sent.
          if (prefix.length < sent.length) expect(sent.startsWith(prefix)).toBe(true);
          else sent = prefix;
          expect(escapeMarkdown(text).startsWith(escapeMarkdown(sent))).toBe(true);
        }
      }),
    );
  });

  test("takes time linear in the length of the text", () => {
    for (const part of ["**a", "`", "[", "]", "_a ", "|a|\n", "```\n", "~~", "*"]) {
      const startedAt = performance.now();
      committablePrefix(part.repeat(20_000 / part.length));
      expect(performance.now() - startedAt, part).toBeLessThan(500);
    }
  });
});

test.each([
  ["https://e.example", true],
  ["[a](b)", true],
  ["www.e.example", true],
  ["e.example/secret?x", true],
  ["see file.ts, e.g. this", false],
  ["a [1] b", false],
])("hasLink(%j) is %j", (markdown, expected) => {
  expect(hasLink(markdown)).toBe(expected);
});
