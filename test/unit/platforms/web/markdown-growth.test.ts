import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { growthOf } from "../../../support/growth.ts";
import { loadPageModule } from "./page-module.ts";

type PictureLabel = (altText: string) => string;
const { createBlockParser } = await loadPageModule<{
  readonly createBlockParser: (pictureLabel: PictureLabel) => (text: string) => string[];
}>("markdown-blocks");
const toBlocks = createBlockParser((altText) => (altText === "" ? "Bild ohne Titel" : `Bild: ${altText}`));

/** Parts whose repetition, alone or before an end that spoils it, makes Markdown parsers slow. */
const attacks: Record<string, (size: number) => string> = {
  "footnotes without an end": (size) => "[^a]: words\n".repeat(size / 12),
  "footnotes in one paragraph": (size) => "words [^a] [^b\n".repeat(size / 15),
  "lines that belong to a footnote": (size) => `[^a]: words\n${"  more\n".repeat(size / 7)}`,
  "open brackets": (size) => "[".repeat(size),
  "nested brackets": (size) => "[".repeat(size / 2) + "]".repeat(size / 2),
  "open links": (size) => "[a](".repeat(size / 4),
  "link titles": (size) => "[a](b '".repeat(size / 7),
  emphasis: (size) => "a**b".repeat(size / 4),
  "mixed emphasis": (size) => "**a *b ".repeat(size / 7),
  "triple emphasis": (size) => "***a".repeat(size / 4),
  "letters before an @": (size) => `${"a".repeat(size)}@`,
  "dots before an @": (size) => `${"a.".repeat(size / 2)}@b`,
  "spaces inside": (size) => `a${" ".repeat(size)}b`,
  "spaces at the end": (size) => `a${" ".repeat(size)}`,
  "heading of spaces": (size) => `# a${" ".repeat(size)}#b`,
  underlined: (size) => `${"a\n".repeat(size / 2)}=`,
  quotes: (size) => ">".repeat(size),
  "quotes and lists": (size) => `${"> - ".repeat(size / 4)}a`,
  "lazy quotes": (size) => "> a\nb\n".repeat(size / 6),
  "nested lists": (size) => `${"- ".repeat(size / 2)}a`,
  "long list": (size) => "1. a\n\n".repeat(size / 6),
  rules: (size) => `${"* ".repeat(size / 2)}a`,
  backticks: (size) =>
    Array.from({ length: Math.sqrt(size * 2) }, (_, index) => `${"`".repeat(index)}a`).join(""),
  "open comments": (size) => "<!--".repeat(size / 4),
  "open tags": (size) => '<a href="'.repeat(size / 9),
  tables: (size) => `|a|\n|-|\n${"|b|\n".repeat(size / 4)}`,
  fences: (size) => "~~~a\n```\n".repeat(size / 9),
  definitions: (size) => "[a]: <".repeat(size / 6),
  "escaped line ends": (size) => "\\\n".repeat(size / 2),
  "dollar signs": (size) => "$".repeat(size),
  "open formulas": (size) => "\\(a ".repeat(size / 4),
  "open formula blocks": (size) => "$$\na\n\n".repeat(size / 6),
  "formulas that do not end": (size) => "\\[a\n".repeat(size / 4),
  "formulas in paragraphs that do not end": (size) => "\\[a\n\n".repeat(size / 5),
  "prices in paragraphs": (size) => "it costs $5\n\n".repeat(size / 13),
  "allowed tags": (size) => `<br${" ".repeat(size)}`,
};

// Attack: Text that makes a parser slow.
describe("Markdown of a hostile model", () => {
  it.each(Object.entries(attacks))("takes time in proportion to its length: %s", (_name, make) => {
    expect(growthOf(make, toBlocks, { size: 16_000 })).toBeLessThan(3);
  });

  it("names a picture, which is never fetched, in the words of the page", () => {
    expect(toBlocks("![a fox](https://example.com/a.png) ![](/b.png)")).toEqual([
      '<p><a href="https://example.com/a.png">Bild: a fox (example.com)</a> <a href="/b.png">Bild ohne Titel</a></p>\n',
    ]);
  });

  it("never fails, however deep it is nested", () => {
    const part = fc.constantFrom(
      "> ",
      "- ",
      "1. ",
      "*",
      "_",
      "`",
      "[",
      "](",
      "<",
      "|",
      "\n",
      "    ",
      "a",
      "&#",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.integer({ min: 1, max: 500 }), (parts, times) => {
        expect(Array.isArray(toBlocks(parts.join("").repeat(times)))).toBe(true);
      }),
      { numRuns: 100, seed: 8 },
    );
  });

  it("shows a paragraph over 8,000 characters as it is written, and shorter ones formatted", () => {
    expect(toBlocks("**bold** <b>x</b>\n\n> - *quoted*").join("")).toBe(
      "<p><strong>bold</strong> <b>x</b></p>\n<blockquote>\n<ul>\n<li><em>quoted</em></li>\n</ul>\n</blockquote>\n",
    );
    const long = `**bold** <script>${"x".repeat(8000)}`;
    expect(toBlocks(long)).toEqual([`<p>${long.replace("<", "&lt;").replace(">", "&gt;")}</p>\n`]);
  });
});
