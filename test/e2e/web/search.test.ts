import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("the search of the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  }, 60_000);
  afterAll(() => story.close());

  it("finds what was said in any chat, marks the words, and shows the message", async () => {
    const { page, problems } = await story.open();
    await say(page, "Where do we meet?");
    await say(page, "The meeting point is the café in Grünerløkka, at noon.");
    for (let n = 0; n < 4; n++) await say(page, `Filler ${n}`);
    await page.getByRole("button", { name: "New chat" }).click();
    await say(page, "Bread without yeast");

    await page.getByRole("button", { name: "Search chats" }).click();
    const dialog = page.getByRole("dialog", { name: "Search chats" });
    const field = dialog.getByRole("combobox", { name: "Search all that was said" });
    await expect.poll(() => field.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
    // Without words: the latest chats.
    await expect.poll(() => dialog.getByRole("option").allInnerTexts()).toHaveLength(2);
    await field.fill("CAFE grunerløkka");
    await dialog.getByText("One chat was found.").waitFor();
    const found = dialog.getByRole("option");
    await expect.poll(() => found.innerText()).toContain("Where do we meet?");
    await expect.poll(() => found.locator("mark").allInnerTexts()).toEqual(["café", "Grünerløkka"]);
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toBe("Where do we meet?");
    await answerAfter(page, 5);
    // The answer of the sandbox repeats the words; it is the latest message with them.
    const message = page.locator(".from-parley").nth(1);
    await expect
      .poll(() =>
        message.evaluate((element) => {
          const { top, bottom } = element.getBoundingClientRect();
          return top >= 0 && bottom <= element.ownerDocument.defaultView!.innerHeight;
        }),
      )
      .toBe(true);

    await page.getByRole("button", { name: "Search chats" }).click();
    await field.fill("submarine");
    await dialog.getByText("Nothing was found.").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "hidden" });
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
