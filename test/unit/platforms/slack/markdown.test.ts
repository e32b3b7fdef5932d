import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutText, escapedBytes, escapeMarkdown } from "../../../../src/platforms/slack/markdown.ts";

const live = /<(?:!|@|#|https?:)/;

describe("escapeMarkdown", () => {
  test.each([
    ["<!here> look", "&lt;!here&gt; look"],
    ["<!channel|x>", "&lt;!channel|x&gt;"],
    ["hi <@U123>", "hi &lt;@U123&gt;"],
    ["a &lt; b && c", "a &amp;lt; b &amp;&amp; c"],
    ["```\nif (a < b) {}\n```", "```\nif (a &lt; b) {}\n```"],
  ])("makes %j harmless", (markdown, expected) => {
    expect(escapeMarkdown(markdown)).toBe(expected);
  });

  test("keeps quote marks at the start of a line, and only there", () => {
    expect(escapeMarkdown("> quoted > not\n>> deeper <!here>\n  a -> b")).toBe(
      "> quoted &gt; not\n>> deeper &lt;!here&gt;\n  a -&gt; b",
    );
  });

  test("leaves no control sequence and loses no character", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from("<>!@#|&;ltgamp \nhereU1:/")) }),
        (markdown) => {
          const escaped = escapeMarkdown(markdown);
          expect(escaped).not.toMatch(live);
          expect(escaped).not.toContain("<");
          expect(escaped.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&")).toBe(
            markdown,
          );
          expect(Buffer.byteLength(escaped)).toBeLessThanOrEqual(escapedBytes(markdown));
        },
      ),
    );
  });
});

test("escapedBytes counts bytes after escaping", () => {
  expect(escapedBytes("a<é")).toBe(1 + 4 + 2);
});

test("cutText does not split a surrogate pair", () => {
  expect(cutText("ab😀cd", 4)).toBe("ab…");
  expect(cutText("abcd", 4)).toBe("abcd");
});
