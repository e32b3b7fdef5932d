import { readFile } from "node:fs/promises";
import { unzipSync } from "fflate";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("a chat can be taken along", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("as one archive and as Markdown, from the button above it and from /export", async () => {
    const { page, problems } = await story.open();
    const button = page.getByRole("button", { name: "Copy or download this chat" });
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
    expect(await button.count()).toBe(0);
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await say(page, "What is this?");

    await button.click();
    const [archive] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download everything (zip)" }).click(),
    ]);
    expect(archive.suggestedFilename()).toBe("What is this.zip");
    const files = unzipSync(await readFile(await archive.path()));
    const names = Object.keys(files);
    expect(names).toEqual(["conversation.md", "conversation.json", expect.stringMatching(/^image-.*\.png$/)]);
    const markdown = Buffer.from(files["conversation.md"] ?? []).toString();
    expect(markdown).toContain("# What is this?");
    expect(markdown).toContain(`](${names[2]})`);
    const json = JSON.parse(Buffer.from(files["conversation.json"] ?? []).toString()) as {
      messages: unknown;
    };
    expect(json.messages).toHaveLength(2);
    expect(files[names[2] ?? ""]).toEqual(new Uint8Array(await readFile(fixturePath("picture.png"))));

    // By keyboard: the first entry has the focus, Escape gives it back.
    await button.press("Enter");
    const copy = page.getByRole("button", { name: "Copy as Markdown" });
    await expect
      .poll(() => copy.evaluate((element) => element === element.ownerDocument.activeElement))
      .toBe(true);
    await page.keyboard.press("Escape");
    await copy.waitFor({ state: "hidden" });
    await button.press("Enter");
    await copy.press("Enter");
    await page.getByRole("status").getByText("Copied").waitFor();
    await field(page).focus();
    await page.keyboard.press("Control+v");
    await expect.poll(() => field(page).inputValue()).toBe(markdown);
    await field(page).fill("");

    await say(page, "/export");
    const chips = page.locator(".from-parley").nth(1).locator("a.file-chip[download]");
    await expect
      .poll(() => chips.allInnerTexts())
      .toEqual(["conversation.md", "conversation.json", "conversation.zip"]);
    const [packed] = await Promise.all([page.waitForEvent("download"), chips.nth(2).click()]);
    expect(Object.keys(unzipSync(await readFile(await packed.path())))).toHaveLength(3);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
