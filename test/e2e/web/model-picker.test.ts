import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say, startPageStory, type PageStory } from "./page-story.ts";

describe("the model picker in the header", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  }, 60_000);
  afterAll(() => story.close());

  it("sets the model of a new chat before its first message, and changes it later", async () => {
    const { page, problems } = await story.open();
    const button = page.getByRole("button", { name: /^Model: / });
    await expect.poll(() => button.getAttribute("aria-label")).toBe("Model: sandbox/chat (default)");
    await button.click();
    const list = page.getByRole("dialog", { name: "Model of this chat" });
    const search = list.getByRole("combobox", { name: "Search models" });
    await expect.poll(() => search.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
    const offered = await list.getByRole("option").allInnerTexts();
    expect(offered[0]?.trim()).toBe("sandbox/chat (default)");
    // Only models that can chat.
    expect(offered.some((one) => one.includes("transcribe"))).toBe(false);
    const other =
      offered.map((one) => one.trim()).find((one) => one !== "sandbox/chat" && !one.includes("(")) ?? "";
    await search.fill(other.slice(-5));
    await page.keyboard.press("Enter");
    await list.waitFor({ state: "hidden" });
    await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${other}`);
    // Choosing alone makes no chat.
    expect(await page.locator(".conversations li").count()).toBe(0);
    await say(page, "Hello");
    expect(await say(page, "/settings name:chat-model")).toContain(`${other} (from this conversation)`);

    await page.reload();
    await expect.poll(() => button.getAttribute("aria-label")).toBe(`Model: ${other}`);
    await button.click();
    await page.keyboard.press("Home");
    await list.getByRole("option", { name: "Usual: sandbox/chat (default)" }).click();
    await expect.poll(() => button.getAttribute("aria-label")).toBe("Model: sandbox/chat (default)");
    expect(await say(page, "/settings name:chat-model")).toContain("(default)");
    // Escape closes it and gives the focus back.
    await button.click();
    await search.press("Escape");
    await list.waitFor({ state: "hidden" });
    expect(await button.evaluate((one) => one === one.ownerDocument.activeElement)).toBe(true);
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
