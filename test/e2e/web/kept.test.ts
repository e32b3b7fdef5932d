import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, attach, field, send } from "./page-story.ts";
import { hanging, useScriptedPage, whole } from "./use-page.ts";

const texts = (page: Page) => page.locator(".bubble, .markdown").allInnerTexts();
const stop = (page: Page) => page.getByRole("button", { name: "Stop the answer" });
const waits = (page: Page, text: string) =>
  page.locator(".from-user", { hasText: text }).getByText("Waits for the answer above");

describe.skipIf(!has("chromium"))("what was said on the page is not lost from sight", () => {
  const { story, script } = useScriptedPage();

  it("a question that waits is there after a restart, below the answer before it, and answered without a reload", async () => {
    script.answer(
      hanging("It goes on"),
      hanging("It goes on again"),
      hanging("Words for two"),
      whole("A fox."),
    );
    const { page } = await story.open();
    await send(page, "One");
    await page.getByText("It goes on").waitFor();
    await attach(page, "notes.txt");
    await send(page, "Two");
    await waits(page, "Two").waitFor();
    await send(page, "/ask Foxes model:m");
    await waits(page, "Foxes").waitFor();
    await story.stop();
    await story.start();
    await page.getByText("It goes on again").waitFor();
    const before = ["One", "It goes on again", "Two", "/ask Foxes model:m"];
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await waits(page, "Two").waitFor();
      await waits(page, "Foxes").waitFor();
      expect(await texts(page)).toEqual(before);
      await page.locator(".from-user", { hasText: "Two" }).getByText("notes.txt").waitFor();
    }
    await stop(page).click();
    await page.getByText("Words for two").waitFor();
    await page.getByText("Words for tw").waitFor();
    expect(await waits(page, "Two").count()).toBe(0);
    const during = ["One", "It goes on again", "Two", "Words for two", "/ask Foxes model:m"];
    expect(await texts(page)).toEqual(during);
    const third = page.locator(".from-user", { hasText: "Foxes" });
    await third.getByRole("button", { name: "Take back" }).click();
    await third.waitFor({ state: "detached" });
    await page.reload();
    await expect.poll(() => texts(page)).toEqual(during.slice(0, 4));
  });
});
