import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("a chat branches", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("at an answer, into a new chat that goes on and leaves the other as it is", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "What is in it?");
    await say(page, "Thank you.");
    const original = page.url();
    await page.locator(".from-parley").first().getByRole("button", { name: "Branch" }).click();
    await page.waitForURL((url) => url.href !== original);
    await page.getByRole("heading", { level: 1, name: "What is in it? (branch)" }).waitFor();
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(["What is in it?"]);
    await expect
      .poll(() =>
        page
          .locator(".from-user img")
          .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth),
      )
      .toBeGreaterThan(0);

    // The copied answer can be asked for anew, and the chat goes on.
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".from-parley.is-finished").waitFor();
    await say(page, "And now?");
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(["What is in it?", "And now?"]);
    await page.goto(original);
    await answerAfter(page, 1);
    await expect
      .poll(() => page.locator(".bubble").allInnerTexts())
      .toEqual(["What is in it?", "Thank you."]);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("at an older question, which is asked in other words with its files", async () => {
    const { page, problems } = await story.open();
    await say(page, "My cat is called Ink.");
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "Is this Ink?");
    await say(page, "Thank you.");
    const original = page.url();
    const question = page.locator(".from-user").nth(1);
    await question.hover();
    await question.getByRole("button", { name: "Edit" }).click();
    await question.getByRole("textbox", { name: "Edit question" }).fill("Who is this?");
    await question.getByRole("button", { name: "Ask in a new chat" }).click();
    await page.waitForURL((url) => url.href !== original);
    expect(await answerAfter(page, 1)).toContain("You sent 1 picture");
    await expect
      .poll(() => page.locator(".bubble").allInnerTexts())
      .toEqual(["My cat is called Ink.", "Who is this?"]);
    await page.locator(".from-user").nth(1).locator("img").waitFor();
    await page.goto(original);
    await answerAfter(page, 2);
    await expect.poll(() => page.locator(".bubble").nth(1).innerText()).toBe("Is this Ink?");
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
