import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";

test("docs/security.md names tests that exist, for every attack in its table", async () => {
  const text = await readFile("docs/security.md", "utf8");
  const table = text.slice(text.indexOf("## Attacks, and the tests that try them"));
  const rows = table.split("\n").filter((line) => line.startsWith("| ") && !/^\| (Attack|-)/.test(line));
  expect(rows.length).toBeGreaterThan(40);
  const filesOf = (row: string) =>
    Array.from(
      row.matchAll(/`((?:unit|contract|stories|e2e|endurance)\/[\w./-]+)`/g),
      ([, file = ""]) => file,
    );
  expect(rows.filter((row) => filesOf(row).length === 0)).toEqual([]);
  const missing = filesOf(table).filter(
    (file) => !existsSync(`test/${file}.test.ts`) && !existsSync(`test/${file}.ts`),
  );
  expect(missing).toEqual([]);
});
