import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chunk, sse } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, say, send } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

/** A folder for screenshots to look at. By default none are taken. */
const shots = process.env["PAGE_SHOTS"];

const widths = [
  { width: 390, height: 844 },
  { width: 1280, height: 800 },
];
const windows = widths.flatMap((viewport) =>
  (["light", "dark"] as const).map((colorScheme) => ({ viewport, colorScheme })),
);

const text = (page: Page) => page.locator(".from-parley .markdown").innerText();
const position = (page: Page) =>
  page.getByRole("group", { name: "Versions of this answer" }).getByRole("status");
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

describe.skipIf(!has("chromium"))("the versions of an answer", () => {
  const { story, script } = useScriptedPage();

  it.each(windows)("are a key away, and the model reads the newest: %o", async (options) => {
    script.answer(whole("The first fox."), whole("The second fox."), whole("The third fox."), whole("Yes."));
    const { page, problems } = await story.open(options);
    await say(page, "Foxes");
    expect(await position(page).count()).toBe(0);
    for (const words of ["The second fox.", "The third fox."]) {
      await button(page, "Regenerate").click();
      await expect.poll(() => text(page)).toBe(words);
      await answerAfter(page, 0);
    }
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await expect.poll(() => position(page).innerText()).toContain("Version 3 of 3");
      await button(page, "Earlier version").focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => text(page)).toBe("The second fox.");
      expect(await position(page).innerText()).toContain("2/3");
      await page.keyboard.press("Enter");
      await page.keyboard.press("Enter");
      await expect.poll(() => text(page)).toBe("The first fox.");
      expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toBe(
        "Earlier version",
      );
      // Actions apply to the newest.
      expect(await button(page, "Regenerate").count()).toBe(0);
      expect(await violations(page)).toEqual([]);
      await button(page, "Later version").click();
      await expect.poll(() => text(page)).toBe("The second fox.");
      if (isReloaded && shots !== undefined)
        await page.screenshot({
          path: `${shots}/versions-${options.viewport.width}-${options.colorScheme}.png`,
        });
    }
    const { x = 0, width = 0 } = (await page.locator(".foot .facts").boundingBox()) ?? {};
    expect(x + width).toBeLessThanOrEqual(options.viewport.width);
    await send(page, "Good?");
    await answerAfter(page, 1);
    expect(script.asked.at(-1)).toContain("The third fox.");
    expect(script.asked.at(-1)).not.toContain("The second fox.");
    expect(problems).toEqual([]);
  });

  it("are those of a Retry as well, not those to words that were edited", async () => {
    script.answer(
      { ...sse(chunk({ content: "The first fo" })), after: "break" },
      whole("Another fox."),
      whole("A badger."),
      whole("Another badger."),
    );
    const { page } = await story.open();
    await send(page, "Foxes");
    await page.locator(".failure").getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => text(page)).toBe("Another fox.");
    await expect.poll(() => position(page).innerText()).toContain("2/2");
    await button(page, "Earlier version").click();
    await expect.poll(() => text(page)).toBe("The first fo");
    await button(page, "Edit").click();
    await page.getByRole("textbox", { name: "Edit question" }).fill("Badgers");
    await button(page, "Save").click();
    await expect.poll(() => text(page)).toBe("A badger.");
    await answerAfter(page, 0);
    expect(await position(page).count()).toBe(0);
    await button(page, "Regenerate").click();
    await expect.poll(() => position(page).innerText()).toContain("2/2");
    await button(page, "Earlier version").click();
    await expect.poll(() => text(page)).toBe("A badger.");
    await page.reload();
    await expect.poll(() => position(page).innerText()).toContain("2/2");
  });
});
