import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("pictures on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  const answer = (page: Page, index: number) => page.locator(".from-parley").nth(index);

  it("have the prompt as alt text, and Again draws as many once more, also after a restart", async () => {
    const { page, problems } = await story.open();
    await say(page, "/imagine a red fox count:2 size:64x64");
    const alts = (index: number) =>
      answer(page, index)
        .locator("img")
        .evaluateAll((images) => images.map((image) => image.getAttribute("alt")));
    expect(await alts(0)).toEqual(["a red fox", "a red fox"]);
    expect(problems).toEqual([]);
    await story.restart();
    await page.reload();
    await answerAfter(page, 0);
    await answer(page, 0).getByRole("button", { name: "Again" }).press("Enter");
    await answerAfter(page, 1);
    expect(await alts(1)).toEqual(["a red fox", "a red fox"]);
    await expect.poll(() => page.locator(".from-user").last().innerText()).toContain("/imagine a red fox");
    expect(await answer(page, 0).locator("img").count()).toBe(2);
    await page.context().close();
  });

  it("are changed by the keyboard alone, and the answer says which picture it took", async () => {
    const { page, problems } = await story.open();
    await say(page, "/imagine a red fox count:2 size:64x64");
    const change = answer(page, 0).getByRole("button", { name: "Change" });
    await change.press("Enter");
    const words = page.getByLabel("What should change?");
    await words.waitFor();
    expect(await words.and(page.locator(":focus")).count()).toBe(1);
    await page.keyboard.press("Escape");
    expect(await change.and(page.locator(":focus")).count()).toBe(1);
    await change.press("Enter");
    await words.fill("make it blue");
    for (const key of ["Tab", "ArrowDown", "Tab", "Enter"]) await page.keyboard.press(key);
    const text = await answerAfter(page, 1);
    expect(text).toContain("Changed from picture 2 of 2 “a red fox”");
    await expect.poll(() => answer(page, 1).locator("img").getAttribute("alt")).toBe("make it blue");
    expect(await page.locator(".action-form").count()).toBe(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("are changed by plain words, the one that is named, also after a restart", async () => {
    const { page } = await story.open();
    await say(page, "/imagine a red fox size:64x64");
    await say(page, "/imagine a grey cat size:64x64");
    await story.restart();
    await page.reload();
    await answerAfter(page, 1);
    expect(await say(page, "Make the fox blue")).toContain("Changed from the picture “a red fox”");
    await expect.poll(() => answer(page, 2).locator("img").getAttribute("alt")).toBe("Make the fox blue");
    expect(await say(page, "Make it darker")).toContain("Changed from the picture “Make the fox blue”");
    await page.context().close();
  });

  it("of a private answer stay private", async () => {
    const { page } = await story.open();
    await say(page, "Remember the word larch.");
    await say(page, "/ask Draw a red fox model:sandbox/image private:yes");
    await answer(page, 1).getByRole("button", { name: "Again" }).click();
    await answerAfter(page, 2);
    expect(await answer(page, 2).locator("img").count()).toBe(1);
    await page.reload();
    await answerAfter(page, 0);
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.context().close();
  });
});
