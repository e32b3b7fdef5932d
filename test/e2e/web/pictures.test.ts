import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, attach, field, say } from "./page-story.ts";
import { usePage } from "./use-page.ts";

describe.skipIf(!has("chromium"))("pictures on the page", () => {
  const story = usePage();
  const answer = (page: Page, index: number) => page.locator(".from-parley").nth(index);
  const alts = (page: Page, index: number) =>
    answer(page, index)
      .locator("img")
      .evaluateAll((images) => images.map((image) => image.getAttribute("alt")));
  const box = (page: Page) => page.getByRole("dialog", { name: "Picture" });
  const position = (page: Page) => box(page).getByRole("status");

  it("are drawn in the size that was asked for with the prompt as alt text; Again draws as many once more", async () => {
    const { page, problems } = await story.open();
    await say(page, "/imagine a red fox count:2 size:96x64");
    expect(await alts(page, 0)).toEqual(["a red fox", "a red fox"]);
    const size = () =>
      answer(page, 0)
        .locator("img")
        .first()
        .evaluate((image) => {
          const { naturalWidth, naturalHeight } = image as unknown as Record<string, number>;
          return [naturalWidth, naturalHeight];
        });
    await expect.poll(size).toEqual([96, 64]);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(size).toEqual([96, 64]);
    await expect
      .poll(() => page.locator(".bubble").innerText())
      .toBe("/imagine a red fox size:96x64 count:2");
    await answer(page, 0).getByRole("button", { name: "Again" }).press("Enter");
    await answerAfter(page, 1);
    expect(await alts(page, 1)).toEqual(["a red fox", "a red fox"]);
    await expect.poll(() => page.locator(".from-user").last().innerText()).toContain("/imagine a red fox");
    expect(await answer(page, 0).locator("img").count()).toBe(2);
    expect(problems).toEqual([]);
  });

  it("are changed by the keyboard alone, and the answer says which picture it took", async () => {
    const { page, problems } = await story.open();
    await say(page, "/imagine a red fox count:2 size:64x64");
    const change = answer(page, 0).getByRole("button", { name: "Change" });
    await change.press("Enter");
    const words = page.getByLabel("What should change?");
    await words.waitFor();
    await words.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Escape");
    await change.and(page.locator(":focus")).waitFor();
    await change.press("Enter");
    await words.fill("make it blue");
    for (const key of ["Tab", "ArrowDown", "Tab", "Enter"]) await page.keyboard.press(key);
    const text = await answerAfter(page, 1);
    expect(text).toContain("Changed from picture 2 of 2 “a red fox”");
    await expect.poll(() => alts(page, 1)).toEqual(["make it blue"]);
    expect(await page.locator(".action-form").count()).toBe(0);
    expect(problems).toEqual([]);
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
  });

  it("at full size are followed by the others of the chat, by buttons and keys", async () => {
    const { page, problems } = await story.open();
    await attach(page, "picture.png");
    await say(page, "What is this?");
    await say(page, "/imagine a red fox count:2 size:64x64");
    await page.locator(".from-parley .picture").first().click();
    await position(page).getByText("2 of 3").waitFor();
    await box(page).getByRole("link", { name: "Download" }).waitFor();
    const next = box(page).getByRole("button", { name: "Next picture" });
    await next.click();
    await position(page).getByText("3 of 3").waitFor();
    expect(await next.getAttribute("aria-disabled")).toBe("true");
    await page.keyboard.press("Home");
    await position(page).getByText("1 of 3").waitFor();
    await expect.poll(() => box(page).getByRole("img").getAttribute("alt")).toBe("picture.png");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    await position(page).getByText("2 of 3").waitFor();
    await page.keyboard.press("Escape");
    await box(page).waitFor({ state: "detached" });
    expect(problems).toEqual([]);
  });

  it("are changed from there; one that a person has sent is attached again, with the command for it", async () => {
    const { page, problems } = await story.open();
    await attach(page, "picture.png");
    await say(page, "What is this?");
    await say(page, "/imagine a red fox count:2 size:64x64");
    await page.locator(".from-parley .picture").nth(1).click();
    const change = box(page).getByRole("button", { name: "Change this picture" });
    await change.click();
    const words = box(page).getByLabel("What should change?");
    await words.waitFor();
    // Escape closes the form, then the picture.
    await page.keyboard.press("Escape");
    await words.waitFor({ state: "detached" });
    await change.click();
    await words.fill("make it blue");
    await page.keyboard.press("ArrowLeft");
    await box(page).getByRole("button", { name: "Change", exact: true }).click();
    await box(page).waitFor({ state: "detached" });
    expect(await answerAfter(page, 2)).toContain("Changed from picture 2 of 2 “a red fox”");

    await page.locator(".from-user .picture").first().click();
    await change.click();
    await box(page).waitFor({ state: "detached" });
    await page.getByRole("list", { name: "Files to send" }).getByText("picture.png").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("/imagine ");
    await say(page, "/imagine in grey");
    await answer(page, 3).locator(".picture img").waitFor();
    expect(problems).toEqual([]);
  });
});
