import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("header, list, search and shortcuts", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  }, 60_000);
  afterAll(() => story.close());

  it.each(["light", "dark"] as const)("have no findings of axe, %s", async (colorScheme) => {
    const { page } = await story.open({ colorScheme, reducedMotion: "reduce" });
    const list = page.getByRole("navigation");
    await say(page, "The plan for Oslo");
    await list.getByRole("link", { name: "The plan for Oslo" }).first().waitFor();
    expect(await violations(page)).toEqual([]);

    await page.getByRole("button", { name: /^Model: / }).click();
    await page.getByRole("dialog", { name: "Model of this chat" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");

    const options = list.getByRole("button", { name: "Options of The plan for Oslo" }).first();
    await options.click();
    await list.getByRole("menu").waitFor();
    expect(await violations(page)).toEqual([]);
    await list.getByRole("menuitem", { name: "Rename" }).click();
    await list.getByRole("textbox").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await options.click();
    await list.getByRole("menuitem", { name: "Delete" }).click();
    await list.getByRole("button", { name: "Keep" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");

    await page.keyboard.press("Control+k");
    const search = page.getByRole("dialog", { name: "Search chats" });
    await search.getByRole("combobox").fill("oslo");
    await search.locator("mark").first().waitFor();
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await list.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await page.context().close();
  });
});
