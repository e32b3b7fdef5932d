import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.runIf(has("chromium"))("Fix transcript on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(() => story.close());

  it("takes better words, shows them at the recording and answers anew in the same place, also after a restart", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("voice.ogg"));
    await page.getByText("voice.ogg").waitFor();
    await field(page).press("Enter");
    await answerAfter(page, 0);
    const answer = page.locator(".from-parley").first();
    await answer.getByRole("button", { name: "Fix transcript" }).click();
    const words = page.getByLabel("voice.ogg", { exact: true });
    await words.waitFor();
    await expect.poll(() => words.inputValue()).toMatch(/I measure sound/);
    await words.fill("Remember the word larch.");
    await page.getByRole("button", { name: "Answer anew" }).click();
    await expect
      .poll(() => page.locator(".from-user .voice figcaption").innerText())
      .toBe("Remember the word larch.");
    expect(await answerAfter(page, 0)).toContain("larch");
    expect(await page.locator(".from-parley").count()).toBe(1);
    expect(problems).toEqual([]);
    await story.restart();
    await page.reload();
    await answerAfter(page, 0);
    await expect
      .poll(() => page.locator(".from-user .voice figcaption").innerText())
      .toBe("Remember the word larch.");
    await page.context().close();
  });

  it("replaces the transcript that /transcribe shows, in its answer alone", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("voice.m4a"));
    await page.getByText("voice.m4a").waitFor();
    const heard = await say(page, "/transcribe");
    expect(heard).toMatch(/AAC/);
    const answer = page.locator(".from-parley").first();
    await answer.getByRole("button", { name: "Fix transcript" }).click();
    const words = page.getByLabel("voice.m4a", { exact: true });
    await words.waitFor();
    await page.getByText("It takes the place of the transcript.").waitFor();
    await words.fill("Remember the word larch.");
    await page.getByRole("button", { name: "Save" }).click();
    await expect.poll(() => answer.innerText()).toContain("Remember the word larch.");
    // Once: the answer is the transcript.
    expect(await page.locator(".messages").getByText("Remember the word larch.").count()).toBe(1);
    await page.reload();
    expect(await answerAfter(page, 0)).toContain("Remember the word larch.");
    expect(await page.locator(".from-parley").count()).toBe(1);
    expect(await page.locator(".messages").getByText("Remember the word larch.").count()).toBe(1);
    expect(await page.locator("main").innerText()).not.toContain("AAC");
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
