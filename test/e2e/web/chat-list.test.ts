import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chooseInMenu, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("the list of chats", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  }, 60_000);
  afterAll(() => story.close());

  it("renames and pins chats, under headings, and keeps both over a restart", async () => {
    const { page, problems } = await story.open();
    const list = page.getByRole("navigation");
    for (const text of ["The plan for Oslo", "Bread without yeast"]) {
      await page.getByRole("button", { name: "New chat" }).click();
      await say(page, text);
    }
    await list.getByRole("region", { name: "Today" }).getByRole("link").nth(1).waitFor();
    expect(await list.getByRole("link").allInnerTexts()).toEqual([
      "Bread without yeast",
      "The plan for Oslo",
    ]);

    await chooseInMenu(page, "The plan for Oslo", "Rename");
    const name = list.getByRole("textbox", { name: "New name of The plan for Oslo" });
    await expect.poll(() => name.inputValue()).toBe("The plan for Oslo");
    await page.keyboard.type("Travel");
    await page.keyboard.press("Enter");
    await list.getByRole("link", { name: "Travel" }).waitFor();
    // Escape keeps the name.
    await chooseInMenu(page, "Travel", "Rename");
    await page.keyboard.type("Something else");
    await page.keyboard.press("Escape");
    await list.getByRole("link", { name: "Travel" }).waitFor();

    await chooseInMenu(page, "Travel", "Pin");
    const pinned = list.getByRole("region", { name: "Pinned" });
    await pinned.getByRole("link", { name: "Travel" }).waitFor();
    // Without a server the browser reports failed requests.
    expect(problems).toEqual([]);
    await story.restart();
    await page.reload();
    await pinned.getByRole("link", { name: "Travel" }).click();
    await expect.poll(() => page.getByRole("heading", { level: 1 }).innerText()).toBe("Travel");
    await chooseInMenu(page, "Travel", "Unpin");
    await pinned.waitFor({ state: "detached" });
    // An empty name brings the first words back.
    await list.getByRole("link", { name: "Travel" }).focus();
    await page.keyboard.press("F2");
    await list.getByRole("textbox", { name: "New name of Travel" }).waitFor();
    await page.keyboard.press("Backspace");
    await page.keyboard.press("Enter");
    await list.getByRole("link", { name: "The plan for Oslo" }).waitFor();
    await page.context().close();
  });
});
