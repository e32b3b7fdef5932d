import type { Page } from "playwright-core";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { createWindows } from "../../simulators/browser.ts";
import { has } from "../../support/requirements.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";
import { answerAfter, attach, chooseInMenu, field, say, send } from "./page-story.ts";

/** What a person has done just before the process is killed. Resolves to the check of its result. */
type Deed = (page: Page) => Promise<(page: Page) => Promise<void>>;

const bubbles = (page: Page) => page.locator(".bubble").allInnerTexts();
const messages = (page: Page) => page.locator(".messages").innerText();
const lastAnswer = (page: Page) => page.locator(".from-parley").last();

const deeds: Readonly<Record<string, Deed>> = {
  "talked, which the sandbox that nobody has set up answers": async (page) => {
    await page.getByText("Sandbox: no model is connected.").waitFor();
    expect(await say(page, "My parrot is called Juniper.")).toContain("sandbox");
    expect(await say(page, "What did I say first?")).toContain("My parrot is called Juniper.");
    const current = page.getByRole("navigation").getByRole("link", { name: "My parrot is called Juniper." });
    await expect.poll(() => current.getAttribute("aria-current")).toBe("page");
    const shown = await messages(page);
    await page.reload();
    await answerAfter(page, 1);
    await expect.poll(() => messages(page)).toBe(shown);
    return async (after) => {
      await answerAfter(after, 1);
      await expect.poll(() => messages(after)).toBe(shown);
      expect(await say(after, "List everything I said.")).toContain("What did I say first?");
    };
  },

  "renamed and pinned a chat": async (page) => {
    await say(page, "The plan for Oslo");
    await chooseInMenu(page, "The plan for Oslo", "Rename");
    await page.getByRole("textbox", { name: "New name of The plan for Oslo" }).waitFor();
    await page.keyboard.type("Travel");
    await page.keyboard.press("Enter");
    await page.getByRole("navigation").getByRole("link", { name: "Travel" }).waitFor();
    await chooseInMenu(page, "Travel", "Pin");
    const pinned = (one: Page) =>
      one.getByRole("region", { name: "Pinned" }).getByRole("link", { name: "Travel" });
    await pinned(page).waitFor();
    return (after) => pinned(after).waitFor();
  },

  "put a transcript right": async (page) => {
    await attach(page, "voice.ogg");
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Fix transcript" }).click();
    await page.getByLabel("voice.ogg", { exact: true }).fill("Remember the word larch.");
    await page.getByRole("button", { name: "Get a new answer" }).click();
    const words = (one: Page) => one.locator(".from-user .voice figcaption").innerText();
    await expect.poll(() => words(page)).toBe("Remember the word larch.");
    return async (after) => {
      await expect.poll(() => words(after)).toBe("Remember the word larch.");
      expect(await answerAfter(after, 0)).toContain("larch");
    };
  },

  "drawn pictures": async (page) => {
    const command = "/imagine a red fox size:64x64 count:2";
    await say(page, command);
    await say(page, "/imagine a grey cat size:64x64");
    return async (after) => {
      await answerAfter(after, 1);
      expect(await bubbles(after)).toEqual([command, "/imagine a grey cat size:64x64"]);
      await after.locator(".from-parley").first().getByRole("button", { name: "Again" }).press("Enter");
      await answerAfter(after, 2);
      expect(await lastAnswer(after).locator("img").count()).toBe(2);
    };
  },

  "asked for an answer anew and for its details": async (page) => {
    await say(page, "Tell me of otters.");
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.getByText("Version 2 of 2").waitFor();
    return async (after) => {
      await answerAfter(after, 0);
      await after.getByRole("button", { name: "Details" }).click();
      await after.locator(".told:not([hidden])").getByText("How this answer came about").waitFor();
      await after.getByRole("button", { name: "Regenerate" }).click();
      await after.getByText("Version 3 of 3").waitFor();
      await answerAfter(after, 0);
      expect(await after.locator(".from-parley").count()).toBe(1);
      await after.getByRole("button", { name: "Other model" }).click();
      await after.getByLabel("Model", { exact: true }).waitFor();
    };
  },

  // This one is last, since the process is killed at once.
  "edited a question whose answer was under way": async (page) => {
    await send(page, "Count slowly to one.");
    await page.locator(".from-parley").waitFor();
    await page.getByRole("button", { name: "Edit" }).press("Enter");
    await page.getByRole("textbox", { name: "Edit question" }).fill("Count slowly to three.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("textbox", { name: "Edit question" }).waitFor({ state: "detached" });
    return async (after) => {
      await after.locator(".from-parley.is-finished").getByText("Count slowly to three.").first().waitFor();
      expect(await bubbles(after)).toEqual(["Count slowly to three."]);
      expect(await after.locator(".from-parley").count()).toBe(1);
    };
  },
};

describe.skipIf(!has("chromium"))("the page of a process that is killed, as `npm start` runs it", () => {
  const windows = createWindows();
  const settings = { LOG_LEVEL: "warn" };
  let parley: RunningParley | undefined;
  afterEach(() => windows.leave());
  afterAll(() => parley?.remove());

  it("shows after the next start what people did before", async () => {
    parley = await runParley({ settings });
    const [, url = ""] = await parley.says(/Page {5}on {3}(\S+)[\s\S]*Health/);
    const checks: { readonly name: string; readonly address: string; check(page: Page): Promise<void> }[] =
      [];
    for (const [name, deed] of Object.entries(deeds)) {
      await windows.leave();
      const { page, problems } = await windows.open(url);
      const check = await deed(page);
      checks.push({ name, address: page.url(), check });
      expect(problems, name).toEqual([]);
    }
    const { folder } = parley;
    parley.process.kill("SIGKILL");
    await parley.ended;
    await windows.leave();
    parley = await runParley({ folder, settings: { ...settings, PORT: new URL(url).port } });
    await parley.says(/Health/);
    for (const done of checks) {
      const { page, problems } = await windows.open(done.address);
      await done.check(page);
      expect(problems, done.name).toEqual([]);
      await windows.leave();
    }
  }, 120_000);
});
