import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("a picture at full size", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  const box = (page: Page) => page.getByRole("dialog", { name: "Picture" });
  const position = (page: Page) => box(page).getByRole("status");

  it("is followed by the others of the chat, by buttons and keys", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "What is this?");
    await say(page, "/imagine a red fox count:2 size:64x64");
    await page.locator(".from-parley .picture").first().click();
    await position(page).getByText("2 of 3").waitFor();
    await box(page).getByRole("button", { name: "Next picture" }).click();
    await position(page).getByText("3 of 3").waitFor();
    expect(await box(page).getByRole("button", { name: "Next picture" }).getAttribute("aria-disabled")).toBe(
      "true",
    );
    await page.keyboard.press("Home");
    await position(page).getByText("1 of 3").waitFor();
    await expect.poll(() => box(page).getByRole("img").getAttribute("alt")).toBe("picture.png");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("ArrowRight");
    await position(page).getByText("2 of 3").waitFor();
    await page.keyboard.press("Escape");
    await box(page).waitFor({ state: "detached" });
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("is changed from there", async () => {
    const { page, problems } = await story.open();
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
    expect(await answerAfter(page, 1)).toContain("Changed from picture 2 of 2 “a red fox”");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("that a person has sent is attached again, with the command that changes it", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "What is this?");
    await page.locator(".from-user .picture").click();
    await box(page).getByRole("button", { name: "Change this picture" }).click();
    await box(page).waitFor({ state: "detached" });
    await page.getByRole("list", { name: "Files to send" }).getByText("picture.png").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("/imagine ");
    await say(page, "/imagine in grey");
    await page.locator(".from-parley .picture img").waitFor();
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
