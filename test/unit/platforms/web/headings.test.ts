import { expect, it } from "vitest";
import { loadPageModule } from "./page-module.ts";

const { createBlockParser } = await loadPageModule<{
  createBlockParser: (label: (altText: string) => string) => (text: string) => string[];
}>("markdown-blocks");
const toBlocks = createBlockParser((altText) => altText);

/** Returns the levels of the headings of an answer. */
const levels = (text: string) =>
  [
    ...toBlocks(text)
      .join("")
      .matchAll(/<h(\d)>/g),
  ].map(([, level]) => Number(level));

it.each([
  ["# A\n\n## B\n\n### C\n\n# D", [3, 4, 5, 3]],
  ["## A\n\n### B\n\n## C", [3, 4, 3]],
  ["### A\n\n# B\n\n## C\n\n### D", [3, 3, 4, 5]],
  ["## A\n\n##### B\n\n###### C", [3, 4, 5]],
  ["> ## A\n>\n> ### B\n\n- # C\n- ## D", [3, 4, 3, 4]],
  ["# A\n\n## B\n\n### C\n\n#### D\n\n##### E\n\n###### F", [3, 4, 5, 6, 6, 6]],
])("headings of an answer begin at level 3 and leave none out: %j", (text, expected) => {
  expect(levels(text)).toEqual(expected);
});
