import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("Details on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("open and close below an answer, also after a crash of the process", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    await say(page, "What did I say first?");
    const details = page.getByRole("button", { name: "Details" });
    expect(await details.count()).toBe(2);
    await details.last().click();
    const told = page.locator(".told:not([hidden])");
    await told.getByText("How this answer came about").waitFor();
    await expect
      .poll(() => told.innerText())
      .toMatch(/Context: 3 messages, about [\d,]+ tokens; nothing left out/);
    await expect.poll(() => details.last().getAttribute("aria-expanded")).toBe("true");
    await details.last().click();
    expect(await told.count()).toBe(0);
    expect(problems).toEqual([]);

    await story.restart();
    await page.reload();
    await answerAfter(page, 1);
    await details.first().click();
    await told.getByText("How this answer came about").waitFor();
    await page.context().close();
  });

  it("of a private answer are there", async () => {
    const { page } = await story.open();
    await say(page, "Remember the word larch.");
    await say(page, "/ask What is a larch? private:yes");
    const details = page.getByRole("button", { name: "Details" });
    await details.last().click();
    await page.locator(".told:not([hidden])").getByText("How this answer came about").waitFor();
    await page.context().close();
  });
});
