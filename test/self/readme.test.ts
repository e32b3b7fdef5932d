import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { stored } from "../../src/conversations/keys.ts";
import { toSettingsTables } from "../../src/setting-texts.ts";

// A new setting is written into it by `npx vitest run test/self/readme.test.ts -u`.
test("docs/settings-reference.md has the tables that `npm run settings` prints", async () => {
  const file = "docs/settings-reference.md";
  const [head] = (await readFile(file, "utf8")).split("\n## ");
  await expect(`${head}\n${toSettingsTables()}\n`).toMatchFileSnapshot(`../../${file}`);
});

test("docs/architecture.md has the table of what is stored", async () => {
  const page = (await readFile("docs/architecture.md", "utf8")).replaceAll(/ +/g, " ");
  for (const [space, { row }] of Object.entries(stored)) expect(page).toContain(`| \`${space}\` | ${row} |`);
});

test("the README fits two screens: at most 6,000 characters", async () => {
  expect((await readFile("README.md", "utf8")).length).toBeLessThanOrEqual(6000);
});
