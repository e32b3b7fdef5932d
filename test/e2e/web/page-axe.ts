import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const axe = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface Findings {
  readonly passes: readonly unknown[];
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
  }[];
}

/** Returns the violations that axe-core finds in what the page shows at this moment. */
export async function violations(page: Page): Promise<string[]> {
  if ((await page.evaluate<string>("typeof axe")) === "undefined") await page.evaluate(axe);
  const found = await page.evaluate<Findings>("axe.run(document)");
  // This makes sure that it has looked at the page and not at nothing.
  if (found.passes.length < 10) throw new Error(`axe-core applied only ${found.passes.length} rules`);
  return found.violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes.map(({ html, failureSummary = "" }) => `${html} ${failureSummary}`).join("\n")}`,
  );
}
