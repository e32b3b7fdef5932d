import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, say, startPageStory, type PageStory } from "./page-story.ts";

const dayMs = 86_400_000;

describe.skipIf(!has("chromium"))("below messages", () => {
  let story: PageStory;
  beforeAll(async () => {
    const price = { inputPerMillionUsd: 2, outputPerMillionUsd: 8 };
    story = await startPageStory({ MODEL_PRICES: JSON.stringify({ "sandbox/chat": price }) });
  });
  afterAll(async () => {
    await story?.close();
  });

  it("stands when they were sent, and days are separated", async () => {
    const { page, problems } = await story.open({ locale: "en-GB", timezoneId: "Europe/Oslo" });
    await say(page, "Good morning");
    const times = page.locator(".message time");
    expect(await times.count()).toBe(2);
    await expect.poll(() => times.first().innerText()).toMatch(/^\d\d:\d\d$/);
    await expect
      .poll(() => times.first().getAttribute("title"))
      .toMatch(/^\w+,? \d+ \w+ \d{4} at \d\d:\d\d$/);
    expect(await page.locator(".day").count()).toBe(0);

    await page.clock.setFixedTime(Date.now() + dayMs);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".day").allInnerTexts()).toEqual(["Yesterday"]);
    await page.clock.setFixedTime(Date.now() + 400 * dayMs);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".day").allInnerTexts()).toEqual([expect.stringMatching(/\d{4}$/)]);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("stands what an answer has used, and in the chat's menu what all of them have", async () => {
    const { page, problems } = await story.open();
    await say(page, "One");
    const usage = page.locator(".usage");
    await usage.first().waitFor();
    await expect.poll(() => usage.first().innerText()).toMatch(/^(about )?\d+ tokens · \$\d/);
    await say(page, "Two");
    await expect.poll(() => usage.count()).toBe(2);
    await page.getByRole("button", { name: "Copy or download this chat" }).click();
    const sum = page.locator(".chat-menu").getByText("The answers of this chat:");
    const tokens = (text: string) => Number(/(\d[\d,]*) tokens/.exec(text)?.[1]?.replace(",", ""));
    await sum.waitFor();
    const parts = await usage.allInnerTexts();
    expect(tokens(await sum.innerText())).toBe(tokens(parts[0]!) + tokens(parts[1]!));
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
