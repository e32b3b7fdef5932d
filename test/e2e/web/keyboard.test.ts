import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, say } from "./page-story.ts";
import { usePage } from "./use-page.ts";

const hasFocus = (one: Locator) =>
  expect.poll(() => one.evaluate((e) => e === e.ownerDocument.activeElement));
const focusedLabel = (page: Page) => page.evaluate("document.activeElement.getAttribute('aria-label')");

describe.skipIf(!has("chromium"))("the keyboard on the page", () => {
  const story = usePage();

  it("moves into the menu of the account when its items have loaded; Escape leaves the list open", async () => {
    const { page, problems } = await story.open({ viewport: { width: 360, height: 640 } });
    const loading = Promise.withResolvers<void>();
    await page.route(/account-menu\.js/, async (route) => {
      await loading.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Conversations" }).click();
    const account = page.getByRole("button", { name: "Account and settings: Local chats" });
    await account.press("Enter");
    await expect.poll(() => account.getAttribute("aria-expanded")).toBe("true");
    // The items have not loaded, so that the button still has the focus.
    await page.keyboard.press("Escape");
    await expect.poll(() => account.getAttribute("aria-expanded")).toBe("false");
    expect(await account.isVisible()).toBe(true);
    await account.press("Enter");
    loading.resolve();
    await hasFocus(page.getByRole("menuitem", { name: "Settings" })).toBe(true);
    await page.keyboard.press("Escape");
    await hasFocus(account).toBe(true);
    expect(await account.isVisible()).toBe(true);
    expect(problems).toEqual([]);
  });

  it("writes a question of several lines and reaches the answer, which is announced", async () => {
    const { page } = await story.open();
    await hasFocus(field(page)).toBe(true);
    await page.keyboard.type("First line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second line");
    await page.keyboard.press("Enter");
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".bubble").innerText()).toBe("First line\nsecond line");
    const announced = page.getByRole("status").filter({ hasText: "Parley:" });
    await expect.poll(() => announced.innerText()).toContain("sandbox");
    await hasFocus(field(page)).toBe(true);
    // Shift+Tab from the composer reaches the answer's button.
    for (let steps = 0; steps < 12; steps++) {
      await page.keyboard.press("Shift+Tab");
      if ((await focusedLabel(page)) === "Copy this answer") break;
      expect(steps).toBeLessThan(11);
    }
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
  });

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
  });

  it("goes round the lists by the arrow keys, and is back where it was when a list or a dialog closes", async () => {
    const { page, problems } = await story.open();
    await say(page, "The only one");
    const model = page.getByRole("button", { name: /^Model: / });
    await model.press("Enter");
    const models = page.getByRole("dialog", { name: "Model of this chat" });
    await hasFocus(models.getByRole("combobox")).toBe(true);
    await page.keyboard.press("ArrowUp");
    const marked = (list: Locator) =>
      list.getByRole("option").evaluateAll((all) => all.findIndex((one) => one.matches(".is-marked")));
    const last = (await models.getByRole("option").count()) - 1;
    await expect.poll(() => marked(models)).toBe(last);
    expect(await models.getByRole("combobox").getAttribute("aria-activedescendant")).toBe(
      await models.getByRole("option").nth(last).getAttribute("id"),
    );
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => marked(models)).toBe(0);
    await page.keyboard.press("Escape");
    await models.waitFor({ state: "hidden" });
    await hasFocus(model).toBe(true);

    await field(page).focus();
    await page.keyboard.type("/");
    const commands = page.getByRole("listbox", { name: "Suggestions" });
    await page.keyboard.press("ArrowUp");
    await expect.poll(() => marked(commands)).toBe((await commands.getByRole("option").count()) - 1);
    await page.keyboard.press("ArrowDown");
    await expect.poll(() => marked(commands)).toBe(0);
    await field(page).fill("");

    // A click beside a dialog closes it, unless it holds what was typed.
    for (const [key, name, isKept] of [
      ["Control+k", "Search chats", false],
      ["Control+/", "Keyboard shortcuts", false],
      ["", "Settings", true],
    ] as const) {
      if (key === "") {
        await field(page).fill("/settings");
        await page.keyboard.press("Enter");
      } else await page.keyboard.press(key);
      const dialog = page.getByRole("dialog", { name });
      await dialog.waitFor();
      await page.mouse.click(3, 3);
      if (isKept) {
        await dialog.getByRole("button", { name: "Save" }).and(page.locator(":enabled")).waitFor();
        await page.keyboard.press("Escape");
      }
      await dialog.waitFor({ state: "detached" });
      await hasFocus(field(page)).toBe(true);
    }
    expect(problems).toEqual([]);
  });

  it("opens and closes the drawer of a phone", async () => {
    const { page } = await story.open({ viewport: { width: 390, height: 780 } });
    const navigation = page.getByRole("navigation", { name: "Conversations" });
    const button = page.getByRole("button", { name: "Conversations" });
    await button.waitFor();
    expect(await navigation.isVisible()).toBe(false);
    await button.press("Enter");
    await navigation.waitFor();
    await expect.poll(() => focusedLabel(page)).toBe("Close the list");
    await page.keyboard.press("Escape");
    await navigation.waitFor({ state: "hidden" });
    await expect.poll(() => focusedLabel(page)).toBe("Conversations");
    await button.press("Enter");
    await expect.poll(() => focusedLabel(page)).toBe("Close the list");
    await navigation.getByRole("button", { name: "New chat" }).press("Enter");
    await navigation.waitFor({ state: "hidden" });
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
  });

  it("completes commands, options and models, closes the list, and keeps the text of a refused command", async () => {
    const { page } = await story.open();
    await field(page).focus();
    await page.keyboard.type("/im");
    await page.getByRole("option", { name: /\/imagine/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => field(page).inputValue()).toBe("/imagine ");
    await page.keyboard.type("a green hill si");
    await page.getByRole("option", { name: /size:/ }).waitFor();
    await page.keyboard.press("Tab");
    await expect.poll(() => field(page).inputValue()).toBe("/imagine a green hill size:");

    await field(page).fill("");
    await page.keyboard.type("/ask hello model:sand");
    await page.getByRole("option", { name: "sandbox/chat" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor({ state: "detached" });
    await page.keyboard.type("b");
    await page.getByRole("option", { name: "sandbox/chat" }).waitFor();
    await page.keyboard.press("Tab");
    await expect.poll(() => field(page).inputValue()).toMatch(/^\/ask hello model:sandbox\/\w+ $/);

    // Only models that can do what the command does are offered.
    await field(page).fill("");
    await page.keyboard.type("/imagine a cat model:");
    await page.getByRole("option", { name: "sandbox/image" }).waitFor();
    // Earlier offers go with the response.
    await expect.poll(() => page.getByRole("option").allInnerTexts()).toEqual(["sandbox/image"]);

    for (const [text, words] of [
      ["/imagin a cat", "There is no command /imagin"],
      ["/imagine a cat count:9", "a whole number from 1 to 4"],
    ] as const) {
      await field(page).fill(text);
      await page.keyboard.press("Enter");
      await page.getByRole("alert").getByText(words).waitFor();
      expect(await field(page).inputValue()).toBe(text);
    }
    expect(await page.locator(".message").count()).toBe(0);
  });
});
