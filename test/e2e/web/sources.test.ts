import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, say, send } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

const titled = "<img src=x onerror=alert(1)> **Parrots**";
const citation = (url: string, title?: string) => ({
  type: "url_citation",
  url_citation: { url, title, start_index: 0, end_index: 3 },
});

describe.skipIf(!has("chromium"))("the sources of an answer on the page", () => {
  const { story, script } = useScriptedPage();

  /** Text and address of each, by its number. */
  const sources = (page: Page, within = ".from-parley") =>
    page
      .locator(`${within} .sources li`)
      .evaluateAll((all) =>
        all.map((each) => [
          each.getAttribute("value"),
          each.querySelector("a")?.textContent,
          each.querySelector("a")?.getAttribute("href"),
          each.querySelector("a")?.rel,
        ]),
      );

  it("are links with plain words, in Details too, and the same after a reload and in an earlier version", async () => {
    const annotations = [
      citation("https://pages.example/parrots", titled),
      citation("javascript:alert(1)", "Not shown"),
      citation("https://ada:secret@pages.example/", "Not shown"),
      citation("https://pages.example/other"),
    ];
    script.answer(
      sse(chunk({ content: "They fly." }), chunk({ annotations }, "stop"), done),
      whole("They do."),
    );
    const { page } = await story.open({ colorScheme: "dark" });
    await say(page, "Do parrots fly?");
    const rel = "noopener noreferrer nofollow";
    const wanted = [
      ["1", titled, "https://pages.example/parrots", rel],
      ["2", "pages.example/other", "https://pages.example/other", rel],
    ];
    expect(await sources(page)).toEqual(wanted);
    await page.getByRole("region", { name: "Sources" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Details" }).click();
    await expect.poll(() => sources(page, ".told")).toEqual(wanted);
    await page.reload();
    await expect.poll(() => sources(page)).toEqual(wanted);
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".markdown", { hasText: "They do." }).waitFor();
    await page.getByRole("button", { name: "Good answer" }).waitFor();
    expect(await sources(page)).toEqual([]);
    await page.getByRole("button", { name: "Earlier version" }).click();
    await expect.poll(() => sources(page)).toEqual(wanted);
    script.answer(whole("Then they land."));
    await send(page, "And then?");
    await answerAfter(page, 1);
    expect(script.asked.at(-1)).toContain("They do.");
    expect(script.asked.join()).not.toContain("pages.example");
  });
});
