import fc from "fast-check";
import { expect, test } from "vitest";
import { splitMarkdown } from "../../../../src/platforms/delivery/split-markdown.ts";

const head = "| Name | Age |\n|:-----|----:|";

test("a table longer than a message keeps its head and its alignment in each message, and every row once", () => {
  fc.assert(
    fc.property(
      fc.array(fc.stringMatching(/^[a-z]{1,30}$/), { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 120, max: 400 }),
      fc.boolean(),
      (names, maxLength, isBetweenText) => {
        const rows = names.map((name, index) => `| ${name} | ${index} |`);
        const table = [head, ...rows].join("\n");
        const markdown = isBetweenText ? `Before it\n\n${table}\n\nafter it` : table;
        const pieces = splitMarkdown(markdown, { maxLength, lengthOf: (text) => text.length });
        for (const piece of pieces) expect(piece.length).toBeLessThanOrEqual(maxLength);
        const withRows = pieces.filter((piece) => /^\| [a-z]+ \| \d+ \|$/m.test(piece));
        for (const piece of withRows) expect(piece.split(head)).toHaveLength(2);
        const shown = pieces.join("\n").match(/^\| [a-z]+ \| \d+ \|$/gm);
        expect(shown).toEqual(rows);
      },
    ),
    { numRuns: 200 },
  );
});

test("text after a table does not get its head", () => {
  const rows = Array.from({ length: 10 }, (_, index) => `| row | ${index} |`);
  const pieces = splitMarkdown([head, ...rows, "", "after ".repeat(40)].join("\n"), {
    maxLength: 150,
    lengthOf: (text) => text.length,
  });
  for (const piece of pieces.filter((one) => one.startsWith("after"))) expect(piece).not.toContain("Name");
});
