import { parse } from "discord-markdown-parser";
import fc from "fast-check";
import { expect, test } from "vitest";
import { toDiscordMarkdown } from "../../../../src/platforms/discord/reply/content.ts";

interface Node {
  readonly type: string;
  readonly content?: string | Node | readonly Node[];
}

/** Reads a text with a public parser of Discord's Markdown: words, and each word's kind of block. */
function readBack(markdown: string): { readonly words: string; readonly kinds: ReadonlySet<string> } {
  const kinds = new Set<string>();
  const textOf = (node: Node | string | readonly Node[] | undefined): string => {
    if (node === undefined) return "";
    if (typeof node === "string") return node;
    if (Array.isArray(node)) return (node as readonly Node[]).map(textOf).join("");
    const { type, content } = node as Node;
    kinds.add(type);
    return type === "br" ? "\n" : textOf(content);
  };
  const words = textOf(parse(markdown, "extended"));
  return { words: bare(words), kinds };
}

/** Returns a text without white space, characters without width, quote and list marks. */
function bare(text: string): string {
  return text.replaceAll(/[\s\u200B]|^(?:> |- |\d+\. )+/gm, "");
}

/** Words of odd characters that mean something on Discord and nothing, or something else, in Markdown. */
const word = fc.oneof(
  fc.stringMatching(/^[a-zäß]{1,6}$/),
  fc.constantFrom("||", "a||b", "||hidden||", ">", "3>2", "1<2", ":)", "C#"),
);
const sentence = fc.array(word, { minLength: 1, maxLength: 6 }).map((words) => `so ${words.join(" ")}`);
const codeLine = fc.constantFrom(
  "x = 1",
  "a ``` b",
  "`tick`",
  "| a | b |",
  "# no heading",
  "> no quote",
  "||or||",
);
const code = fc
  .tuple(fc.constantFrom("````", "~~~", "`````", "~~~~"), fc.array(codeLine, { minLength: 1, maxLength: 4 }))
  .map(([fence, lines]) => ({
    source: `${fence}js\n${lines.join("\n")}\n${fence}`,
    words: lines.join(""),
    kind: "codeBlock",
  }));
const paragraph = sentence.map((text) => ({ source: text, words: text, kind: "text" }));
const quote = sentence.map((text) => ({ source: `>>> ${text}`, words: text, kind: "blockQuote" }));
const list = fc.array(sentence, { minLength: 1, maxLength: 3 }).map((items) => ({
  source: items.map((one) => `- ${one}`).join("\n"),
  words: items.join(""),
  kind: "text",
}));
const blocks = fc.array(fc.oneof(paragraph, code, quote, list), { minLength: 1, maxLength: 5 });

test("the text that a person reads back on Discord is the text that was sent", () => {
  fc.assert(
    fc.property(blocks, (made) => {
      const source = made.map((one) => one.source).join("\n\n");
      const { words, kinds } = readBack(toDiscordMarkdown(source));
      expect(words.replaceAll(">", "")).toBe(
        bare(made.map((one) => one.words).join("\n")).replaceAll(">", ""),
      );
      expect(kinds.has("spoiler")).toBe(false);
      for (const { kind } of made) expect(kinds).toContain(kind);
    }),
    { numRuns: 200 },
  );
});

test.for([
  ["a quote does not take in what follows it", ">>> quoted\n\nafter", "> > > quoted\n\nafter"],
  ["bars outside of code hide nothing", "a || b || c", String.raw`a \|\| b \|\| c`],
  ["bars in code stay", "`a || b`", "`a || b`"],
  ["small print is what its author marked, not a line that begins like it", "-# no", String.raw`\-# no`],
  ["a fence of four backticks", "````js\na\n````", "```js\na\n```"],
  ["a fence of tildes", "~~~\na\n~~~", "```\na\n```"],
  ["backticks in a block", "````\n```\n````", "```\n`\u200B`\u200B`\n```"],
  ["code by indentation", "so:\n\n    a", "so:\n\n```\na\n```"],
  ["bold by underscores, which Discord underlines", "__a__", "**a**"],
  ["a heading by its underline", "Title\n===", "# Title"],
  [
    "columns by their alignment",
    "|a|b|c|\n|:-|:-:|-:|\n|x|y|z|\n|long|long|long|",
    "```\na      b       c\n----  ----  ----\nx      y       z\nlong  long  long\n```",
  ],
] as const)("%s", ([, markdown, shown]) => {
  expect(toDiscordMarkdown(markdown)).toBe(shown);
});

const smallPrint = "-# The answer is cut.";
test.for([
  ["in a paragraph", `so\n${smallPrint}`],
  ["before bold words", "-# **The answer** is cut."],
  ["in a quote", `> so\n> ${smallPrint}`],
  ["in a list", `- ${smallPrint}\n- b`],
  ["in HTML", `<div>\n${smallPrint}\n</div>`],
  ["in the words of a picture", `![a\n${smallPrint}](https://a.example/b.png)`],
  ["in the label of a link", `[a\n${smallPrint}](https://a.example)`],
  ["indented", `so\n  ${smallPrint}`],
  ["after a broken table", `| a | b |\n|---|---|\n${smallPrint}`],
  ["beyond 400 marks", `${"*a* ".repeat(500)}\n${smallPrint}`],
  ["beyond 400 marks, first", `${smallPrint}\n${"|| ".repeat(500)}`],
  ["in deep quotes", `${"> ".repeat(30)}so\n\n${smallPrint}`],
  ["in a very long text", `${"word ".repeat(2000)}\n${smallPrint}`],
] as const)("a model cannot write the small print of the bot: %s", ([, source]) => {
  expect(readBack(smallPrint).kinds.has("subtext")).toBe(true);
  expect(readBack(toDiscordMarkdown(source)).kinds.has("subtext")).toBe(false);
  expect(toDiscordMarkdown(source)).not.toMatch(/^\s*-# /m);
});
