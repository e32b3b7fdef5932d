import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { say } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

describe.skipIf(!has("chromium"))("a rating of an answer on the page", () => {
  const { story, script } = useScriptedPage();
  /** The names of the pressed buttons below the last answer. */
  const pressed = (page: Page) =>
    page
      .locator(".from-parley")
      .last()
      .locator("[aria-pressed=true]")
      .evaluateAll((all) => all.map((each) => each.getAttribute("aria-label")));
  const rate = (page: Page, name: string) => page.getByRole("button", { name }).last().click();

  it("is shown as pressed, can be changed, and is the same after a reload; another answer has none", async () => {
    script.answer(whole("Because."), whole("For another reason."));
    const { page } = await story.open();
    await say(page, "Why?");
    expect(await pressed(page)).toEqual([]);
    await rate(page, "Good answer");
    await expect.poll(() => pressed(page)).toEqual(["Good answer"]);
    await page.reload();
    await expect.poll(() => pressed(page)).toEqual(["Good answer"]);
    await rate(page, "Bad answer");
    await expect.poll(() => pressed(page)).toEqual(["Bad answer"]);
    await page.reload();
    await expect.poll(() => pressed(page)).toEqual(["Bad answer"]);
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".markdown", { hasText: "For another reason." }).waitFor();
    await page.getByRole("button", { name: "Good answer" }).waitFor();
    expect(await pressed(page)).toEqual([]);
  });

  it("says so where the answer is gone, by the keyboard too", async () => {
    script.answer(whole("Because."));
    const { page } = await story.open();
    await say(page, "Why?");
    await page.route("**/act", (route) =>
      route.fulfill({
        status: 410,
        contentType: "application/json",
        body: JSON.stringify({ error: { code: "gone", message: "This answer is no longer stored." } }),
      }),
    );
    await page.getByRole("button", { name: "Good answer" }).focus();
    await page.keyboard.press("Enter");
    await page.getByText("This answer is no longer stored.").waitFor();
    expect(await pressed(page)).toEqual([]);
  });
});
