import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toDiscordMarkdown } from "../../../../src/platforms/discord/markdown.ts";

describe("toDiscordMarkdown", () => {
  test("converts a narrow table to an aligned code block", () => {
    const table = "| Name | Age |\n|:-----|----:|\n| **Ada** | 36 |\n| 李 | 7 |";
    expect(toDiscordMarkdown(`Before\n${table}\nAfter`)).toBe(
      "Before\n```\nName  Age\n----  ---\nAda    36\n李      7\n```\nAfter",
    );
  });

  test("leaves a wide table unchanged", () => {
    const table = `| A | B |\n|---|---|\n| ${"x".repeat(60)} | ${"y".repeat(60)} |`;
    expect(toDiscordMarkdown(table)).toBe(table);
  });

  test("leaves code unchanged, tables and headings in it included", () => {
    const code = "```md\n#### not a heading\n| a | b |\n|---|---|\n| 1 | 2 |\n```";
    expect(toDiscordMarkdown(code)).toBe(code);
  });

  test("leaves code in a list item unchanged", () => {
    const code = "- item\n\n  ```md\n  #### not a heading\n  ```";
    expect(toDiscordMarkdown(code)).toBe(code);
    expect(toDiscordMarkdown(code.replaceAll("\n  ", "\n    "))).toBe(code);
  });

  test("replaces syntax that Discord does not render", () => {
    expect(toDiscordMarkdown("#### Deep\n\n---\n![a cat](https://example.com/cat.png)")).toBe(
      "**Deep**\n\n──────────\n[a cat](https://example.com/cat.png)",
    );
    expect(toDiscordMarkdown("# Title\n- point\n1. one")).toBe("# Title\n- point\n1. one");
  });

  test("keeps every word of a table", () => {
    const cell = fc.stringMatching(/^[a-z]{1,8}$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 6 }), (rows) => {
        const table = ["| a | b | c |", "|---|---|---|", ...rows.map((row) => `| ${row.join(" | ")} |`)].join(
          "\n",
        );
        const shown = toDiscordMarkdown(table);
        for (const row of rows) for (const word of row) expect(shown).toContain(word);
        expect(shown.startsWith("```\n") && shown.endsWith("\n```")).toBe(true);
      }),
    );
  });
});
