import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("the settings panel of the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("sets a chat's model, says from where everything is, and resets it", async () => {
    const { page, problems } = await story.open();
    expect(await say(page, "Hello")).toContain("sandbox");
    await page.getByRole("button", { name: "Settings" }).click();
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("radio", { name: "This page" }).check();
    await panel.getByLabel("Language").fill("Deutsch");
    await panel.getByLabel("Calm").selectOption("on");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Saved.").waitFor();
    await expect.poll(() => panel.getByLabel("Language").inputValue()).toBe("German");

    await panel.getByRole("radio", { name: "This conversation" }).check();
    await expect
      .poll(() => panel.getByLabel("Language").getAttribute("placeholder"))
      .toBe("German (from this page)");
    const models = await panel.getByLabel("Chat model").locator("option").allInnerTexts();
    const other = models.find((model) => model.startsWith("sandbox/") && model !== "sandbox/chat") ?? "";
    await panel.getByLabel("Chat model").selectOption(other);
    await page.keyboard.press("Enter");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Saved.").waitFor();
    await page.keyboard.press("Escape");
    await panel.waitFor({ state: "hidden" });
    expect(await say(page, "/settings name:chat-model")).toContain(`${other} (from this conversation)`);
    expect(await say(page, "/settings name:chat-model value:default for:here")).toContain("(default)");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("shows what is wrong at its field, keeps what was typed, and saves once it is right", async () => {
    const { page } = await story.open();
    // The composer opens the same panel.
    await page.getByRole("textbox", { name: "Message" }).fill("/settings");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("radio", { name: "This page" }).check();
    await panel.getByLabel("Temperature").fill("abc");
    await panel.getByLabel("Place budget").fill("lots");
    await panel.getByRole("button", { name: "Save" }).click();
    await panel.getByText("Temperature is a number from 0 to 2.").waitFor();
    await panel
      .getByText("Place budget is an amount in US dollars from 0 to 1000000, such as 2.50.")
      .waitFor();
    await panel.getByText("2 values are not right.").waitFor();
    const field = panel.getByLabel("Temperature");
    expect(await field.inputValue()).toBe("abc");
    await expect
      .poll(() => field.evaluate((element) => element === element.ownerDocument.activeElement))
      .toBe(true);
    await field.fill("0.5");
    await panel.getByLabel("Place budget").fill("2.5");
    await page.keyboard.press("Enter");
    await panel.getByText("Saved.").waitFor();
    await expect.poll(() => panel.getByLabel("Place budget").inputValue()).toBe("2.50");
    await page.context().close();
  });

  it("sets the theme of this browser at once, before the next page is painted", async () => {
    const { page, problems } = await story.open({ colorScheme: "light" });
    const background = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("radio", { name: "Dark" }).check();
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    expect(await background()).toBe(dark);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("radio", { name: "Like the system" }).check();
    expect(await background()).toBe(light);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("stays usable on a narrow screen", async () => {
    const { page, problems } = await story.open({ viewport: { width: 360, height: 640 } });
    await page.getByRole("button", { name: "Conversations" }).click();
    await page.getByRole("button", { name: "Settings" }).click();
    const panel = page.getByRole("dialog", { name: "Settings" });
    await panel.getByRole("button", { name: "Save" }).waitFor();
    const box = await panel.boundingBox();
    expect(box?.width).toBeLessThanOrEqual(360);
    expect(await panel.evaluate((element) => element.scrollWidth <= element.clientWidth)).toBe(true);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
