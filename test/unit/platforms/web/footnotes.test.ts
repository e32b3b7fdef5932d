import { describe, expect, test } from "vitest";
import { loadPageModule } from "./page-module.ts";

const { createBlockParser } = await loadPageModule<{
  readonly createBlockParser: (pictureLabel: (altText: string) => string) => (text: string) => string[];
}>("markdown-blocks");
const toBlocks = createBlockParser((altText) => altText);
const ref = (number: number) => `<sup class="note-ref"><a href="#note-${number}">${number}</a></sup>`;

describe("footnotes", () => {
  test("are numbered in the order of their references and listed at the end", () => {
    const text =
      "Water is wet.[^wet] Fire is **hot**.[^2]\n\n[^2]: Ask *anybody*.\n[^wet]: See\n  the sea.\n\nThe end.[^wet]";
    expect(toBlocks(text)).toEqual([
      `<p>Water is wet.${ref(1)} Fire is <strong>hot</strong>.${ref(2)}</p>\n`,
      `<p>The end.${ref(1)}</p>\n`,
      `<ol class="footnotes"><li class="note-1">See<br>the sea.</li><li class="note-2">Ask <em>anybody</em>.</li></ol>`,
    ]);
  });

  test("stay as they are written where one half is missing", () => {
    expect(toBlocks("See [^1] and <[^x>.")).toEqual(["<p>See [^1] and &lt;[^x&gt;.</p>\n"]);
    expect(toBlocks("No reference.\n\n[^1]: But a note.")).toEqual([
      "<p>No reference.</p>\n",
      '<ol class="footnotes"><li class="note-1">But a note.</li></ol>',
    ]);
    expect(toBlocks("- item\n\n  [^1]: in a list").join("")).toContain("[^1]: in a list");
  });

  test("are no link definitions, and code is left alone", () => {
    expect(toBlocks("`[^1]`\n\n[^1]: https://example.com")[0]).toBe("<p><code>[^1]</code></p>\n");
    expect(toBlocks("[a]: https://example.com\n\n[a]")[0]).toBe(
      '<p><a href="https://example.com">a</a></p>\n',
    );
  });

  test("of one text are not those of the next", () => {
    toBlocks("One[^1]\n\n[^1]: note");
    expect(toBlocks("Two[^1]")).toEqual(["<p>Two[^1]</p>\n"]);
  });
});
