import { afterEach, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { field, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("limits on the page", () => {
  let story: PageStory;
  afterEach(async () => {
    await story?.close();
  });

  it("a budget of the page and the rate are told beside the text field, and nothing that was written is lost", async () => {
    story = await startPageStory({
      TURNS_PERSON_MINUTE: "4",
      MODEL_PRICES: '{"sandbox/chat": {"inputPerMillionUsd": 10, "outputPerMillionUsd": 10}}',
    });
    const { page } = await story.open();
    expect(await say(page, "Hello")).toContain("sandbox");
    expect(await say(page, "/settings name:place-budget value:0")).toContain("Saved");
    const send = page.getByRole("button", { name: "Send", exact: true });
    const answers = page.locator(".from-parley");
    const refused = async (text: string, words: RegExp): Promise<void> => {
      const before = await answers.count();
      await field(page).fill(text);
      await send.click();
      await page.getByRole("alert").getByText(words).waitFor();
      expect(await field(page).inputValue()).toBe(text);
      expect(await answers.count()).toBe(before);
    };
    await refused("Am I over it?", /Nothing is left of the budget of this place for a day \(\$0\.00\)/);
    await say(page, "/usage");
    await say(page, "/settings name:place-budget value:default");
    await refused(
      "One more",
      /You can send 4 requests in a minute, and have\. Try again in \d+ (second|minute)/,
    );
    await page.context().close();
  });
});
