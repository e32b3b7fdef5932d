import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { toSettingsTable } from "../../src/settings-table.ts";

/** Cells without the padding that the formatter adds. */
const rows = (markdown: string) =>
  markdown
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").map((cell) => cell.trim()));

test("the README's table of settings is the one that `npm run settings` prints", async () => {
  const readme = await readFile("README.md", "utf8");
  const table = readme.slice(readme.indexOf("## Settings"), readme.indexOf("## Run it for a team"));
  expect(rows(table)).toEqual(rows(toSettingsTable()));
});
