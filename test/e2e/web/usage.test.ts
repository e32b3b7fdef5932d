import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("/usage and /help on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("show everybody's usage as a table, and as a file to download", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    expect(await say(page, "/usage")).toContain("Everybody's usage");
    expect(await page.locator("table").count()).toBe(2);
    expect(await say(page, "/usage by:model")).toContain("sandbox/chat");
    await say(page, "/usage csv:yes");
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: /usage-.*\.csv/ }).click();
    const csv = await readFile(await (await download).path(), "utf8");
    expect(csv).toContain("web:local,You,,,sandbox/chat,chat,1,");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("/help explains the page", async () => {
    const { page } = await story.open();
    const help = await say(page, "/help");
    expect(help).toContain("Tab completes it");
    // Messages on the page have no menu of commands.
    expect(help).not.toContain("Ask about this");
    expect(await say(page, "/help imagine")).toContain("Examples");
    await page.context().close();
  });
});
