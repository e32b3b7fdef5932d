import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { toSettingsTables } from "../../src/cli-help.ts";

/** Returns headings and cells without the padding that the formatter adds. */
const rows = (markdown: string) =>
  markdown
    .split("\n")
    .filter((line) => line.startsWith("| `") || line.startsWith("## "))
    .map((line) => line.split("|").map((cell) => cell.trim()));

test("docs/settings-reference.md has the tables that `npm run settings` prints", async () => {
  expect(rows(await readFile("docs/settings-reference.md", "utf8"))).toEqual(rows(toSettingsTables()));
});

test("the README fits two screens: at most 6,000 characters", async () => {
  expect((await readFile("README.md", "utf8")).length).toBeLessThanOrEqual(6000);
});
