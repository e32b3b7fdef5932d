import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { has } from "../../support/requirements.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { say, startPageStory, type PageStory } from "./page-story.ts";

const bubbles = (page: Page) => page.locator(".bubble").allInnerTexts();
const answers = (page: Page) => page.locator(".from-parley.is-finished");

async function edit(page: Page, question: string, text: string): Promise<void> {
  const message = page.locator(".from-user", { hasText: question });
  await message.hover();
  await message.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit question" }).fill(text);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("textbox", { name: "Edit question" }).waitFor({ state: "detached" });
}

describe.skipIf(!has("chromium"))("questions that are edited on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("are answered anew in the same place, an older one changes only; the store forgets the words", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    expect(await say(page, "My password is swordfish-4711.")).toContain("swordfish-4711");
    await edit(page, "swordfish-4711", "My bird is a macaw.");
    await answers(page).nth(1).getByText("My bird is a macaw.").waitFor();
    expect(await bubbles(page)).toEqual(["My parrot is called Juniper.", "My bird is a macaw."]);
    expect(await answers(page).count()).toBe(2);
    await edit(page, "Juniper", "My parrot is called Pollux.");
    expect(await bubbles(page)).toEqual(["My parrot is called Pollux.", "My bird is a macaw."]);
    expect(await say(page, "What did I say first?")).toContain("My parrot is called Pollux.");
    const shown = await page.locator(".messages").innerText();
    await page.reload();
    await answers(page).nth(2).waitFor();
    await expect.poll(() => page.locator(".messages").innerText()).toBe(shown);
    const bytes = await bytesOfFolder(story.parley().folder);
    for (const gone of ["swordfish-4711", "Juniper is"]) expect(holds(bytes, gone)).toBe(false);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("show what another tab has changed them to since, however late the response of Save comes", async () => {
    const { page } = await story.open();
    await say(page, "My ship is a sloop.");
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.locator(".bubble", { hasText: "sloop" }).waitFor();
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    await page.route("**/edit", async (route) => {
      const response = await route.fetch();
      await isReleased;
      await route.fulfill({ response });
    });
    const saved = edit(page, "sloop", "My ship is a ketch.");
    await other.locator(".bubble", { hasText: "ketch" }).waitFor();
    await edit(other, "ketch", "My ship is a yawl.");
    await answers(other).getByText("My ship is a yawl.").waitFor();
    // Of the whole page: the editor is still open.
    await answers(page).getByText("My ship is a yawl.").waitFor();
    release();
    await saved;
    expect(await bubbles(page)).toEqual(["My ship is a yawl."]);
    await page.context().close();
  });

  it("stop the answer that is under way, also on a phone, by keyboard, and after a crash", async () => {
    const { page, problems } = await story.open({ viewport: { width: 360, height: 700 }, hasTouch: true });
    await page.getByRole("textbox", { name: "Message" }).fill("Count slowly to one.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.locator(".from-parley").waitFor();
    await page.getByRole("button", { name: "Edit" }).press("Enter");
    const editor = page.getByRole("textbox", { name: "Edit question" });
    await expect.poll(() => editor.evaluate((field) => field.matches(":focus"))).toBe(true);
    await editor.fill("Count slowly to two.");
    await editor.press("Control+Enter");
    await answers(page).first().getByText("Count slowly to two.").waitFor();
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.getByRole("button", { name: "Edit" }).press("Enter");
    await editor.press("Escape");
    expect(await bubbles(page)).toEqual(["Count slowly to two."]);
    const width = await page.locator("html").evaluate((element) => element.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
    await edit(page, "two", "Count slowly to three.");
    await story.restart();
    await page.reload();
    await answers(page).first().getByText("Count slowly to three.").waitFor();
    expect(await bubbles(page)).toEqual(["Count slowly to three."]);
    expect(problems.filter((line) => !/Failed to load|ERR_|network/i.test(line))).toEqual([]);
    await page.context().close();
  });

  it("are no commands, and offer no Edit where they were", async () => {
    const { page } = await story.open();
    await say(page, "/models");
    expect(await page.getByRole("button", { name: "Edit" }).count()).toBe(0);
    await say(page, "Hello.");
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Edit question" }).fill("/forget");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Commands are not edited.").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await bubbles(page)).toEqual(["/models", "Hello."]);
    await page.context().close();
  });
});
