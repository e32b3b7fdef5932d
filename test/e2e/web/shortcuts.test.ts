import type { Locator } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { field, say, startPageStory, type PageStory } from "./page-story.ts";

const hasFocus = (one: Locator) =>
  expect.poll(() => one.evaluate((e) => e === e.ownerDocument.activeElement));

describe.skipIf(!has("chromium"))("the keyboard on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  }, 60_000);
  afterAll(() => story.close());

  it("opens search, a new chat and the list of shortcuts, edits the last question, and skips the list", async () => {
    const { page, problems } = await story.open();
    await say(page, "The first one");
    await say(page, "The last one");

    await page.keyboard.press("ArrowUp");
    const editor = page.getByRole("textbox", { name: "Edit question" });
    await hasFocus(editor).toBe(true);
    await expect.poll(() => editor.inputValue()).toBe("The last one");
    await page.keyboard.press("Escape");
    await editor.waitFor({ state: "detached" });
    // With a draft the key moves the caret.
    await field(page).fill("a draft");
    await field(page).press("ArrowUp");
    expect(await editor.count()).toBe(0);
    // In a field it is a character.
    await field(page).press("?");
    await expect.poll(() => field(page).inputValue()).toContain("?");
    await field(page).fill("");

    await page.keyboard.press("Control+k");
    const search = page.getByRole("dialog", { name: "Search chats" });
    await hasFocus(search.getByRole("combobox")).toBe(true);
    await page.keyboard.press("Escape");
    await search.waitFor({ state: "detached" });

    await page.locator("h1").click();
    await page.keyboard.press("?");
    const list = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await list.getByText("New chat").waitFor();
    // A dialog has its own keys.
    await page.keyboard.press("Control+k");
    expect(await search.count()).toBe(0);
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });

    await page.keyboard.press("Control+Shift+O");
    await expect.poll(() => new URL(page.url()).pathname).toBe("/");
    await hasFocus(field(page)).toBe(true);

    await page.evaluate("document.activeElement.blur()");
    const skip = page.getByRole("link", { name: "Skip to the message field" });
    await skip.focus();
    expect((await skip.boundingBox())?.width).toBeGreaterThan(100);
    await page.keyboard.press("Enter");
    await hasFocus(field(page)).toBe(true);
    expect((await skip.boundingBox())?.width).toBeLessThan(2);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
