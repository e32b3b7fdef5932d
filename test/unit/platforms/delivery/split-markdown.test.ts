import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitMarkdown } from "../../../../src/platforms/delivery/split-markdown.ts";
import { growthOf } from "../../../support/growth.ts";

const chars = (text: string) => text.length;
const split = (markdown: string, maxLength: number) =>
  splitMarkdown(markdown, { maxLength, lengthOf: chars });

/** Returns the bytes after `&`, `<` and `>` are escaped, as Slack counts them. */
const escapedBytes = (text: string) =>
  Buffer.byteLength(text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"));

const words = (count: number) => Array.from({ length: count }, (_, index) => `word${index}`).join(" ");
const codeLines = (count: number, indent = "") =>
  Array.from({ length: count }, (_, index) => `${indent}const line${index} = ${index};`).join("\n");

describe("splitMarkdown", () => {
  it("returns no pieces for blank text", () => {
    expect(split("", 100)).toEqual([]);
    expect(split(" \n\n ", 100)).toEqual([]);
  });

  it("returns a text that fits unchanged", () => {
    const text = "# Title\n\n- one\n- two\n\n```js\nlet a;\n```";
    expect(split(text, 100)).toEqual([text]);
  });

  it("cuts between paragraphs rather than in one", () => {
    expect(split(`${words(8)}\n\n${words(12)}`, 120)).toEqual([words(8), words(12)]);
  });

  it("cuts between list items and keeps their numbers", () => {
    const items = Array.from({ length: 9 }, (_, index) => `${index + 1}. ${words(4)}`);
    const pieces = split(items.join("\n"), 100);
    expect(pieces.join("\n")).toBe(items.join("\n"));
    for (const piece of pieces) expect(piece).toMatch(/^\d\. word0/);
  });

  it("cuts after a sentence rather than in one", () => {
    const pieces = split("The first sentence is short. The second one is quite a bit longer than that.", 60);
    expect(pieces).toEqual([
      "The first sentence is short.",
      "The second one is quite a bit longer than that.",
    ]);
  });

  it("cuts between words where a sentence is too long", () => {
    for (const piece of split(words(100), 80)) expect(piece).toMatch(/^word\d+( word\d+)*$/);
  });

  it("does not separate a heading from its text", () => {
    const [first, second] = split(`${words(10)}\n\n## Next\n\n${words(10)}`, 100);
    expect(first).toBe(words(10));
    expect(second).toMatch(/^## Next\n\nword0/);
  });

  it("cuts Chinese after a sentence", () => {
    const sentence = "会议改到星期四下午三点举行。";
    for (const piece of split(sentence.repeat(10), 50)) expect(piece.replaceAll(sentence, "")).toBe("");
  });

  for (const fence of ["```", "~~~", "````"]) {
    it(`closes ${fence} at a cut and opens it again with its language`, () => {
      const pieces = split(`Before:\n\n${fence}ts\n${codeLines(20)}\n${fence}`, 120);
      expect(pieces.length).toBeGreaterThan(2);
      for (const piece of pieces) {
        expect(piece.length).toBeLessThanOrEqual(120);
        expect(piece.split("\n").filter((line) => line.startsWith(fence))).toEqual([`${fence}ts`, fence]);
      }
      const code = pieces.flatMap((piece) => piece.split("\n").filter((line) => line.startsWith("const")));
      expect(code.join("\n")).toBe(codeLines(20));
    });
  }

  it("keeps the indentation of code across a cut", () => {
    const code = Array.from({ length: 10 }, (_, index) => `    ${"  ".repeat(index % 3)}call(${index});`);
    const pieces = split(`\`\`\`py\n${code.join("\n")}\n\`\`\``, 80);
    expect(pieces.flatMap((piece) => piece.split("\n").slice(1, -1))).toEqual(code);
  });

  it("adds no empty block when only its closing line is left", () => {
    const code = "x".repeat(90);
    const pieces = split(`\`\`\`js\n${code}\n\`\`\`\n\n${words(10)}`, 100);
    expect(pieces).toEqual([`\`\`\`js\n${code}\n\`\`\``, words(10)]);
  });

  it("adds no empty block before a long line of code", () => {
    const pieces = split(`\`\`\`js\n${"x".repeat(200)}\n\`\`\``, 40);
    for (const piece of pieces) expect(piece).toMatch(/^```js\nx+\n```$/);
  });

  it("moves the block of a list item to the margin when it continues in the next message", () => {
    const pieces = split(`- step\n\n    \`\`\`sh\n${codeLines(8, "    ")}\n    \`\`\`\n- next`, 90);
    expect(pieces.length).toBeGreaterThan(2);
    for (const piece of pieces.slice(1)) expect(piece.startsWith("```sh\nconst")).toBe(true);
    expect(pieces.at(-1)).toMatch(/;\n```\n- next$/);
  });

  it("keeps quote markers on split lines and on blocks in quotes", () => {
    for (const piece of split(`> ${words(60)}`, 90)) expect(piece.startsWith("> word")).toBe(true);
    const code = codeLines(8).replaceAll(/^/gm, "> ");
    const pieces = split(`> \`\`\`js\n${code}\n> \`\`\``, 90);
    expect(pieces.length).toBeGreaterThan(1);
    for (const piece of pieces) expect(piece).toMatch(/^> ```js\n(> const .*\n)+> ```$/);
  });

  it("closes a block that is still open at the end", () => {
    expect(split("```js\nlet a", 100)).toEqual(["```js\nlet a\n```"]);
  });

  it("does not take backticks within a sentence for a block", () => {
    expect(split("```code``` is code\n\ntext", 100)).toEqual(["```code``` is code\n\ntext"]);
    expect(split("Use ``` to open a block", 100)).toEqual(["Use ``` to open a block"]);
  });

  const unbreakable = [
    "[a link with words](https://example.com/a_(b)/c)",
    "![a picture of it](https://example.com/p.png)",
    "<@123456789012345678>",
    "<https://example.com/|words of a link>",
    "`some code with spaces`",
    "``a ` b c d``",
    "https://example.com/a/long/path?with=query&and=more",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
    "e\u0301",
  ];
  for (const part of unbreakable) {
    it(`never splits ${part}`, () => {
      for (let before = 0; before < 70; before += 1) {
        for (const filler of ["x".repeat(before), `${words(20).slice(0, before)} `]) {
          const pieces = split(`${filler}${part} ${words(30)}`, 70);
          expect(
            pieces.some((piece) => piece.includes(part)),
            `${before}: ${pieces[0]}`,
          ).toBe(true);
        }
      }
    });
  }

  it("never begins a message with an accidental block", () => {
    const text = `${words(9)} - not an item 1. no number # no heading > no quote `.repeat(10);
    for (let max = 60; max < 140; max += 1) {
      for (const piece of split(text, max))
        expect(piece).toMatch(/^(?:word|not|no|item|number|heading|quote|a)/);
    }
  });

  it("measures with lengthOf", () => {
    const text = `a < b && c > d ü € 👍 `.repeat(100);
    const pieces = splitMarkdown(text, { maxLength: 100, lengthOf: escapedBytes });
    for (const piece of pieces) {
      expect(escapedBytes(piece)).toBeLessThanOrEqual(100);
      expect(escapedBytes(piece)).toBeGreaterThan(60);
    }
    expect(pieces.join(" ")).toBe(text.trim());
  });

  it("fills the message where code points are counted", () => {
    const lengthOf = (text: string) => Array.from(text).length;
    expect(splitMarkdown("👍".repeat(150), { maxLength: 100, lengthOf }).map(lengthOf)).toEqual([100, 50]);
  });

  it("keeps earlier pieces when text is appended", () => {
    const text = `${words(100)}\n\n\`\`\`js\n${codeLines(30)}\n\`\`\`\n\n${words(50)}`;
    for (let length = 400; length < text.length; length += 37) {
      const grown = split(text.slice(0, length), 150);
      const whole = split(text, 150);
      // The last two may still change, since a cut depends on the following text.
      expect(whole.slice(0, Math.max(0, grown.length - 2))).toEqual(grown.slice(0, -2));
    }
  });

  it("is linear in the length of the text", () => {
    const shapes = {
      words: "word ",
      "one word": "x",
      code: "```js\nlet a;\n```\n",
      list: "- a\n",
      brackets: "[a](b",
      backticks: "`",
      angles: "<a ",
      blanks: "a.\n\n",
    };
    for (const [name, shape] of Object.entries(shapes)) {
      const make = (size: number) => shape.repeat(size / shape.length);
      expect(
        growthOf(make, (text) => split(text, 2000), { size: 30_000 }),
        name,
      ).toBeLessThan(3);
    }
  });
});

const word = fc.oneof(
  fc.constantFrom(
    "a",
    "word",
    "Thursday.",
    "three!",
    "会议。",
    "👩‍👩‍👧‍👦",
    "e\u0301",
    "**bold**",
    "`code`",
    "```x",
    "<@12>",
  ),
  fc.constantFrom(
    "[a b](https://e.com/x_(y))",
    "https://example.com/?q=1",
    "-",
    "1.",
    "#",
    ">",
    "|",
    "~~~",
    "\\",
    "&lt;",
  ),
  fc.integer({ min: 1, max: 90 }).map((length) => "long".repeat(length)),
);
/** Matches a line that opens or closes a block. */
const fenceLine = /^(?:[ \t>]|[-*+](?=[ \t])|\d+[.)](?=[ \t]))*(?:`{3,}[^`\n]*|~{3,}.*)$/gm;
const startsFence = /^(?:[ \t>]|[-*+](?=[ \t])|\d+[.)](?=[ \t]))*(?:```|~~~)/;
const sentence = fc
  .array(word, { minLength: 1, maxLength: 25 })
  .map((parts) => parts.join(" "))
  .filter((line) => !startsFence.test(line));
const code = fc.array(fc.oneof(sentence, fc.constantFrom("", "    indented()", "# no heading")), {
  maxLength: 12,
});
const codeBlock = fc
  .tuple(fc.constantFrom("```", "~~~", "````"), fc.constantFrom("", "js", "c++"), code)
  .map(([fence, language, lines]) => [fence + language, ...lines, fence].join("\n"));
const indented = (text: string, by: string) => text.replaceAll(/^/gm, by);
const block = fc.oneof(
  sentence,
  codeBlock,
  sentence.map((text) => `## ${text}`),
  fc.array(sentence, { minLength: 1, maxLength: 5 }).map((lines) => indented(lines.join("\n"), "> ")),
  codeBlock.map((text) => indented(text, "> ")),
  fc.tuple(sentence, codeBlock).map(([text, block]) => `1. ${text}\n\n${indented(block, "   ")}`),
  fc.tuple(sentence, codeBlock).map(([text, block]) => `- a\n  - ${text}\n\n${indented(block, "     ")}`),
  fc.array(sentence, { minLength: 1, maxLength: 6 }).map((lines) => indented(lines.join("\n"), "- ")),
);
const documents = fc.array(block, { maxLength: 8 }).map((blocks) => blocks.join("\n\n"));
const smallDocuments = fc.array(block, { maxLength: 2 }).map((blocks) => blocks.join("\n\n"));
const soup = fc
  .array(
    fc.constantFrom(
      "```",
      "~~~",
      "`",
      "\n",
      "\n\n",
      " ",
      "    ",
      "> ",
      "- ",
      "js",
      "text.",
      "[",
      "](",
      ")",
      "👍",
      "x".repeat(50),
    ),
    {
      maxLength: 120,
    },
  )
  .map((parts) => parts.join(""))
  .filter((text) => !/`{41}|~{41}/.test(text));

/** Returns a text without fence lines, quote markers and white space. */
const substance = (text: string) => text.replaceAll(fenceLine, "").replaceAll(/[\s>]/g, "");

/** Whether every block that a text opens is closed, read line by line as CommonMark does. */
function isBalanced(text: string): boolean {
  let open: string | undefined;
  for (const line of text.split("\n")) {
    const marks = open === undefined ? /^(?:[ \t>]|[-*+](?=[ \t])|\d+[.)](?=[ \t]))*/ : /^[\s>]*/;
    const bare = line.replace(marks, "");
    const run = /^(?:`{3,}|~{3,})/.exec(bare)?.[0];
    if (run === undefined) continue;
    const rest = bare.slice(run.length);
    if (open === undefined) {
      if (!(run.startsWith("`") && rest.includes("`"))) open = run;
    } else if (run.startsWith(open) && rest.trim() === "") open = undefined;
  }
  return open === undefined;
}

describe("splitMarkdown, for any document", () => {
  const maxLengths = fc.integer({ min: 100, max: 400 });
  const measures = fc.constantFrom(chars, escapedBytes);

  it("keeps every piece within maxLength", () => {
    fc.assert(
      fc.property(fc.oneof(documents, soup), maxLengths, measures, (text, maxLength, lengthOf) => {
        for (const piece of splitMarkdown(text, { maxLength, lengthOf })) {
          expect(lengthOf(piece)).toBeLessThanOrEqual(maxLength);
          expect(piece.trim()).not.toBe("");
        }
      }),
      { numRuns: 250 },
    );
  });

  it("loses nothing", () => {
    fc.assert(
      fc.property(documents, maxLengths, measures, (text, maxLength, lengthOf) => {
        const pieces = splitMarkdown(text, { maxLength, lengthOf });
        expect(pieces.map(substance).join("")).toBe(substance(text));
      }),
      { numRuns: 250 },
    );
  });

  it("keeps the blocks of every piece balanced", () => {
    fc.assert(
      fc.property(documents, maxLengths, measures, (text, maxLength, lengthOf) => {
        expect(isBalanced(text)).toBe(true);
        for (const piece of splitMarkdown(text, { maxLength, lengthOf })) {
          expect(isBalanced(piece), piece).toBe(true);
        }
      }),
      { numRuns: 250 },
    );
  });

  it("never splits a surrogate pair", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "grapheme", maxLength: 1500 }),
        fc.integer({ min: 40, max: 200 }),
        (text, max) => {
          for (const piece of split(text, max)) expect(piece.isWellFormed()).toBe(text.isWellFormed());
        },
      ),
    );
  });

  it("terminates for any maxLength", () => {
    fc.assert(
      fc.property(smallDocuments, fc.integer({ min: 1, max: 40 }), (text, maxLength) => {
        expect(split(text, maxLength).every((piece) => piece.trim() !== "")).toBe(true);
      }),
      { numRuns: 100 },
    );
  });
});
