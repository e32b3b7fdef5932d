import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { escapeMarkdown } from "../../../../src/platforms/slack/escape-markdown.ts";
import { escapedBytes } from "../../../../src/platforms/slack/markdown.ts";

const unescape = (text: string) =>
  text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
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

  test.each([
    ["[b](https://e.example/?f=1&g=2) & c", "[b](https://e.example/?f=1&g=2) &amp; c"],
    ["[b & c](/x?a&b(1&2)&c) &", "[b &amp; c](/x?a&b(1&2)&c) &amp;"],
    ['![b](/x?a&b "t & u")', '![b](/x?a&b "t &amp; u")'],
    ["[b](<!here>&<@U1>)", "[b](%3C!here%3E&%3C@U1%3E)"],
    ["[b](&lt;!here&gt;)", "[b](&lt;!here&gt;)"],
    ["`[b](a&b)` [c](d&e)", "`[b](a&amp;b)` [c](d&e)"],
    ["```\n[b](a&b)\n```\n[c](d&e)", "```\n[b](a&amp;b)\n```\n[c](d&e)"],
    ["> - [b](a&b)", "> - [b](a&b)"],
    ["[b](a&b", "[b](a&amp;b"],
  ])("keeps the & of a link's destination: %j", (markdown, expected) => {
    expect(escapeMarkdown(markdown)).toBe(expected);
  });

  test("takes time linear in the length of the text", () => {
    for (const part of ["](", "](a", "`", "` ``", "[x](a&b)", "](((", "<&>"]) {
      const startedAt = performance.now();
      escapeMarkdown(part.repeat(200_000 / part.length));
      expect(performance.now() - startedAt, part).toBeLessThan(500);
    }
  });

  test("leaves no control sequence and loses no character", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...Array.from("<>!@#|&;ltgamp \nhereU1:/[]()`%3CE"), "](") }),
        (markdown) => {
          const escaped = escapeMarkdown(markdown);
          expect(escaped).not.toMatch(live);
          expect(escaped).not.toContain("<");
          // In a destination entities of the model's own are shown as they are.
          if (!markdown.includes("](")) expect(unescape(escaped)).toBe(markdown);
          expect(Buffer.byteLength(escaped)).toBeLessThanOrEqual(escapedBytes(markdown));
        },
      ),
    );
  });
});
