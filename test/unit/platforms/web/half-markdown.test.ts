import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadPageModule } from "./page-module.ts";

const { createBlockParser } = await loadPageModule<{
  createBlockParser: (label: (altText: string) => string) => (text: string) => string[];
}>("markdown-blocks");
const { closeHalf } = await loadPageModule<{ closeHalf: (text: string) => string }>("half-markdown");

describe("the end of an answer that grows", () => {
  it.each([
    ["One **two", "One **two**"],
    ["One **", "One "],
    ["One **two ", "One **two**"],
    ["**One *two", "**One *two***"],
    ["One **two** and *three* ~~four", "One **two** and *three* ~~four~~"],
    ["Call `run", "Call `run`"],
    ["Call `", "Call "],
    ["Call `run` and **not**", "Call `run` and **not**"],
    ["A snake_case word", "A snake_case word"],
    ["2 * 3 is six", "2 * 3 is six"],
    [String.raw`Five \* six`, String.raw`Five \* six`],
    ["See [the page", "See the page"],
    ["See [the page](https://exa", "See the page"],
    ["See [the page](https://example.com)", "See [the page](https://example.com)"],
    ["**See [the page](https://exa", "**See the page**"],
    ["A ![boat](https://exa", "A boat"],
    ["- [ ] Draft\n- [x] Rev", "- [ ] Draft\n- [x] Rev"],
    ["Two [[in", "Two [in"],
    ["Steps:\n-", "Steps:"],
    ["Steps:\n\n1.", "Steps:\n"],
    ["Above\n\n##", "Above\n"],
    ["Above\n``", "Above"],
    ["Above\n\n| Step | Wh", "Above\n"],
    ["Above\n\n| Step | When |\n| --- |", "Above\n"],
    ["Above\n\n| Step |\n| --- |\n| On", "Above\n\n| Step |\n| --- |\n| On"],
    ["```sh\necho **", "```sh\necho **"],
    ["Done.\n\n**Next** step", "Done.\n\n**Next** step"],
  ])("%j is shown as %j", (half, shown) => {
    expect(closeHalf(half).trimEnd()).toBe(shown.trimEnd());
  });

  it("shows no mark on its way that the whole text does not show", () => {
    const toBlocks = createBlockParser((altText) => altText);
    const whole =
      "Here is **a plan** with *care*:\n\n- **One** of `two`\n- [ ] a [link](https://example.com/a_b) to it\n\n| A | B |\n| --- | --- |\n| **c** | d |\n\n1. ***Both*** and ~~gone~~\n2. last";
    for (let length = 1; length <= whole.length; length++) {
      const words = toBlocks(closeHalf(whole.slice(0, length)))
        .join("")
        .replaceAll(/<[^>]*>/g, "");
      expect(words, whole.slice(0, length)).not.toMatch(/[*`|~]|\]\(|---/);
    }
  });

  it("never adds or takes more than marks, and never fails", () => {
    const piece = fc.constantFrom(
      "*",
      "**",
      "_",
      "`",
      "[",
      "](",
      ")",
      "!",
      "~~",
      "|",
      "\n",
      "\n\n",
      "a",
      " ",
      "\\",
      "1.",
      "-",
      "```",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = pieces.join("");
        const letters = (one: string) => one.replaceAll(/[^a]/g, "").length;
        expect(letters(closeHalf(text))).toBeLessThanOrEqual(letters(text));
      }),
    );
  });
});
