import { expect, test } from "vitest";
import { loadPageModule } from "./page-module.ts";

const { createBlockParser } = await loadPageModule<{
  readonly createBlockParser: (pictureLabel: (altText: string) => string) => (text: string) => string[];
}>("markdown-blocks");
const toBlocks = createBlockParser((altText) => altText);
const formula = (text: string) => `<code class="language-math">${text}</code>`;
const block = (text: string) => `<p><code class="language-math-block">${text}</code></p>\n`;

test.each([
  ["Euler: \\(e^{i\\pi} + 1 = 0\\).", `<p>Euler: ${formula("e^{i\\pi} + 1 = 0")}.</p>\n`],
  ["Here $a_1 * b * c$ is one.", `<p>Here ${formula("a_1 * b * c")} is one.</p>\n`],
  ["A small $$x\\,y$$ too.", `<p>A small ${formula("x\\,y")} too.</p>\n`],
  ["$a < b$", `<p>${formula("a &#60; b")}</p>\n`],
])("%j is a formula in a line", (text, markup) => {
  expect(toBlocks(text)).toEqual([markup]);
});

test.each([
  ["\\[\n\\int_0^1 x\\,dx\n\\]", "\\int_0^1 x\\,dx"],
  ["$$\n\\frac{a}{b}\n$$", "\\frac{a}{b}"],
  ["\\[ a \\\\ b \\]", "a \\\\ b"],
  ["$$a^2 + b^2$$", "a^2 + b^2"],
  ["$$ \\text{5 \\$} $$", "\\text{5 \\$}"],
  [
    "$$\\begin{aligned}\na &= b \\\\\nc &= d\n\\end{aligned}$$",
    "\\begin{aligned}\na &#38;= b \\\\\nc &#38;= d\n\\end{aligned}",
  ],
])("%j is a formula of its own", (text, tex) => {
  expect(toBlocks(`Before.\n\n${text}\n\nAfter.`)).toEqual([
    "<p>Before.</p>\n",
    block(tex),
    "<p>After.</p>\n",
  ]);
});

test.each([
  "It costs $5 or $10.",
  "From $5 to $ 10$.",
  "Only one \\( here",
  "US$ 3 and US$ 4",
  "An empty \\(\\) pair",
  "$",
  "$$",
  "$$$$",
])("%j is no formula", (text) => {
  expect(toBlocks(text).join("")).not.toContain("language-math");
});

test("code keeps its dollar signs and backslashes", () => {
  expect(toBlocks("`$a$ \\(b\\)`").join("")).toBe("<p><code>$a$ \\(b\\)</code></p>\n");
  expect(toBlocks("```sh\necho $HOME $PATH\n```").join("")).toContain("echo $HOME $PATH");
});
