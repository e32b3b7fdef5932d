import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { has } from "../../support/requirements.ts";
import { answerAfter, chooseInMenu, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("deleting on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  const isKept = async (text: string) =>
    holds(await bytesOfFolder(join(story.parley().folder, "data")), text);

  it("deletes a conversation by keyboard after confirmation, and its files from the disk", async () => {
    const { page, problems } = await story.open();
    const list = page.getByRole("navigation");
    await say(page, "The vault code is 7319.");
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "And this is the plan.");
    await say(page, "/ask Is the vault empty? private:yes");
    await page.getByRole("button", { name: "New chat" }).click();
    await say(page, "This one stays.");
    expect(await isKept("vault code is 7319")).toBe(true);
    expect(await isKept("Is the vault empty?")).toBe(true);
    await list.getByRole("link", { name: "The vault code is 7319." }).click();
    await answerAfter(page, 1);

    const options = list.getByRole("button", { name: "Options of The vault code is 7319." });
    /** The last item of its menu. */
    const askToDelete = async () => {
      await page.keyboard.press("Enter");
      await page.keyboard.press("End");
      await page.keyboard.press("Enter");
    };
    await options.focus();
    await askToDelete();
    const confirmation = list.getByRole("group", { name: "Delete The vault code is 7319.?" });
    await confirmation.getByText("Delete “The vault code is 7319.” for good?").waitFor();
    // The Keep button has the focus.
    await page.keyboard.press("Enter");
    await confirmation.waitFor({ state: "detached" });
    expect(await page.evaluate("document.activeElement.getAttribute('aria-label')")).toContain("Options of");
    await askToDelete();
    await confirmation.waitFor();
    await page.keyboard.press("Escape");
    await confirmation.waitFor({ state: "detached" });
    expect(await isKept("vault code is 7319")).toBe(true);

    await askToDelete();
    await confirmation.waitFor();
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await list.getByRole("link", { name: "The vault code is 7319." }).waitFor({ state: "detached" });
    await list.getByRole("link", { name: "This one stays." }).waitFor();
    // It was the open one: a new conversation is shown.
    await expect.poll(() => page.locator(".messages").count()).toBe(0);
    expect(new URL(page.url()).pathname).toBe("/");
    expect(await isKept("vault code is 7319")).toBe(false);
    expect(await isKept("picture.png")).toBe(false);
    expect(await isKept("Is the vault empty?")).toBe(false);
    expect(await readdir(join(story.parley().folder, "data", "uploads"))).toEqual([]);
    expect(await isKept("This one stays.")).toBe(true);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("updates other windows", async () => {
    const { page: one } = await story.open();
    await say(one, "A talk in two windows.");
    const { page: two, problems } = await story.open();
    await two.goto(one.url());
    await answerAfter(two, 0);
    const list = two.getByRole("navigation");
    await chooseInMenu(two, "A talk in two windows.", "Delete");
    await list.getByRole("button", { name: "Delete", exact: true }).click();
    for (const page of [one, two]) {
      await page.getByRole("link", { name: "A talk in two windows." }).waitFor({ state: "detached" });
      await expect.poll(() => page.locator(".messages").count()).toBe(0);
    }
    await expect.poll(() => isKept("A talk in two windows.")).toBe(false);
    expect(problems).toEqual([]);
    await one.context().close();
    await two.context().close();
  });

  it("/forget asks for confirmation, and what it removed is no longer shown", async () => {
    const { page, problems } = await story.open();
    await say(page, "A secret of mine.");
    expect(await say(page, "/forget")).toContain("2 messages (1 whole conversation) in this conversation");
    expect(await isKept("A secret of mine.")).toBe(true);
    await page.getByRole("button", { name: "Remove 2 messages" }).click();
    await page.locator(".messages").getByText("Removed in this conversation: 2 messages").waitFor();
    await expect.poll(() => page.locator(".messages").getByText("A secret of mine.").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Remove 2 messages" }).count()).toBe(0);
    expect(await isKept("A secret of mine.")).toBe(false);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});

describe.skipIf(!has("chromium"))("files sent on the page, with keys", () => {
  it("are never readable on disk, and are removed when their message is stored or forgotten", async () => {
    const story = await startPageStory({ STORE_ENCRYPTION_KEYS: Buffer.alloc(32, 8).toString("base64") });
    const folder = join(story.parley().folder, "data");
    const { page } = await story.open();
    const marker = "the vault code is 7319";
    const file = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(marker) });
    await page.getByTestId("picker").setInputFiles(file("vault.txt"));
    await expect.poll(async () => (await readdir(join(folder, "uploads"))).length).toBe(2);
    expect(holds(await bytesOfFolder(folder), marker)).toBe(false);
    expect(holds(await bytesOfFolder(folder), "vault.txt")).toBe(false);
    await say(page, "What is in it?");
    await expect.poll(() => readdir(join(folder, "uploads"))).toEqual([]);
    // One that is not sent yet goes with everything else.
    await page.getByTestId("picker").setInputFiles(file("unsent.txt"));
    await expect.poll(async () => (await readdir(join(folder, "uploads"))).length).toBe(2);
    await page.getByRole("button", { name: "Remove unsent.txt" }).waitFor();
    const { page: other } = await story.open();
    await say(other, "/forget where:everywhere confirm:yes");
    await expect.poll(() => readdir(join(folder, "uploads"))).toEqual([]);
    expect(holds(await bytesOfFolder(folder), marker)).toBe(false);
    await story.close();
  });
});
