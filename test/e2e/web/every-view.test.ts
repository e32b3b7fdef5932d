import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { WindowOptions } from "../../simulators/browser.ts";
import { json } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { field, fixturePath, say, chooseInAccount } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

/** A folder for screenshots to look at. By default none are taken. */
const shots = process.env["PAGE_SHOTS"];

const english = [
  "## Plan\n\nA table, code and a formula:\n\n| Step | When |\n| --- | --- |\n| Draft | Monday |\n| Review | Tuesday |\n",
  "```js\nconst answer = 42; // a line that is rather long, so that it has to be scrolled on a phone\n```\n",
  "1. First, \\(a^2 + b^2\\)\n2. Second, with `code` and a note.[^1]\n\n> A quote.\n\n[^1]: The note.",
].join("\n");
const arabic =
  "## الخطة\n\n| الخطوة | الموعد |\n| --- | --- |\n| المسودة | الاثنين |\n\n1. أولاً، اكتب المسودة.\n2. ثم راجعها مع `npm test`.\n\n```sh\nnpm run check\n```";

/** Finds parts of the messages that go over the edges of the thread, except inside what scrolls by itself. */
const cutOff = `[...document.querySelectorAll(".scroller *")]
  .filter((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    const isCut = width > 1 && (left < -1 || right > document.querySelector(".scroller").clientWidth + document.querySelector(".scroller").getBoundingClientRect().left + 1);
    return isCut && one.closest("pre, .table-frame, math, .sr-only") === null;
  })
  .map((one) => one.tagName + "." + one.className)`;

const wide = { viewport: { width: 1280, height: 800 } };
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** This is 1280 × 1024 at 400 %, as WCAG 1.4.10 asks for. */
const zoomed = { viewport: { width: 320, height: 256 } };
/**
 * axe-core looks at each state light and wide, and dark on a phone. It looks at what a phone does not have
 * wide in both themes. The other views are about space and direction, so axe-core looks only at their thread.
 */
const views: readonly {
  readonly name: string;
  readonly options: WindowOptions;
  readonly text: string;
  readonly isEveryStateChecked: boolean;
}[] = [
  {
    name: "wide-light",
    options: { ...wide, colorScheme: "light" },
    text: english,
    isEveryStateChecked: true,
  },
  {
    name: "phone-dark",
    options: { ...phone, colorScheme: "dark" },
    text: english,
    isEveryStateChecked: true,
  },
  {
    name: "zoomed-dark",
    options: { ...zoomed, colorScheme: "dark" },
    text: english,
    isEveryStateChecked: false,
  },
  {
    name: "arabic-dark",
    options: { ...wide, colorScheme: "dark" },
    text: arabic,
    isEveryStateChecked: false,
  },
  {
    name: "arabic-phone",
    options: { ...phone, colorScheme: "light" },
    text: arabic,
    isEveryStateChecked: false,
  },
];

describe.skipIf(!has("chromium"))("every view of the page", () => {
  const { story, script } = useScriptedPage({
    settings: { TRANSCRIPTION_MODEL: "m" },
    usual: () => json(JSON.stringify({ text: "What was said in the recording." })),
  });

  it.each(views)(
    "is accessible and fits: $name",
    async ({ name, options, text, isEveryStateChecked }) => {
      const { page, problems } = await story.open({ ...options, reducedMotion: "reduce" });
      const themes = [options.colorScheme];

      /** Expects no finding of axe, nothing wider than the window, and takes a screenshot where wanted. */
      async function expectSound(state: string, { isChecked = isEveryStateChecked, also = themes } = {}) {
        for (const colorScheme of isChecked ? also : []) {
          await page.emulateMedia({ colorScheme: colorScheme ?? null });
          expect(await violations(page), `${state}, ${colorScheme}`).toEqual([]);
        }
        await page.emulateMedia({ colorScheme: options.colorScheme ?? null });
        expect(
          await page.evaluate("document.documentElement.scrollWidth - innerWidth"),
          `${state}: wider than the window`,
        ).toBeLessThanOrEqual(0);
        if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}-${state}.png` });
      }

      await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
      await expectSound("welcome");
      await page
        .getByTestId("picker")
        .setInputFiles(["picture.png", "notes.txt", "voice.ogg"].map((file) => fixturePath(file)));
      await page.getByText("voice.ogg").waitFor();
      await field(page).fill("/imag");
      await page.getByRole("listbox").waitFor();
      await expectSound("files-and-commands");
      await field(page).fill("");
      await page.getByTitle("Preview of notes.txt").click();
      await page
        .getByRole("dialog", { name: "Preview of notes.txt" })
        .getByText("This is what Parley")
        .waitFor();
      await expectSound("preview");
      await page.keyboard.press("Escape");
      script.answer(json(JSON.stringify({ text: "What was said in the recording." })), whole(text));
      await say(page, text === arabic ? "اكتب لي خطة قصيرة" : "Write me a short plan");
      await page.locator(".markdown table").waitFor();
      if (text === english) await page.locator(".hljs-keyword").waitFor();
      await page.locator(".from-user .voice").waitFor();
      await expectSound("thread", { isChecked: true });
      expect(await page.evaluate(cutOff), "thread").toEqual([]);
      // What is read has the larger part of the window, however small that is.
      const heights = await page.evaluate<readonly number[]>(
        "[document.querySelector('.scroller').clientHeight, innerHeight]",
      );
      expect(heights[0]! / heights[1]!, "thread").toBeGreaterThan(0.35);

      await field(page).fill("/nothing");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await page.getByRole("alert").getByText("There is no command /nothing").waitFor();
      await page.getByRole("button", { name: "Record a voice note" }).click();
      await page.getByText("Recording", { exact: true }).waitFor({ state: "attached" });
      await page.getByRole("button", { name: "Done" }).and(page.locator(":enabled")).waitFor();
      await expectSound("refused-and-recording");
      await page.getByRole("button", { name: "Cancel" }).click();
      await field(page).fill("");

      await page.getByRole("button", { name: "Copy or download this chat" }).click();
      await page.getByRole("button", { name: "Copy as Markdown" }).waitFor();
      await expectSound("chat-menu");
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: /^Enlarge picture/ }).click();
      await page.getByRole("dialog").waitFor();
      await expectSound("lightbox");
      await page.keyboard.press("Escape");

      const drawer = page.getByRole("button", { name: "Conversations" });
      if (await drawer.isVisible()) await drawer.click();
      const list = page.getByRole("navigation");
      const choose = async (item: string) => {
        await list.getByRole("link").first().hover();
        await list
          .getByRole("button", { name: /^Options of / })
          .first()
          .click();
        await list.getByRole("menu").waitFor();
        if (item === "Rename") await expectSound("list-and-options");
        await list.getByRole("menuitem", { name: item }).click();
      };
      await choose("Rename");
      await list.getByRole("textbox").waitFor();
      await expectSound("rename");
      await list.getByRole("textbox").press("Escape");
      await choose("Delete");
      await page.getByRole("button", { name: "Keep" }).waitFor();
      await expectSound("delete");
      await page.getByRole("button", { name: "Keep" }).click();
      await page.getByRole("button", { name: "Account and settings" }).click();
      await page.getByRole("menuitemradio", { name: "Dark" }).waitFor();
      await expectSound("account");
      await page.keyboard.press("Escape");
      await chooseInAccount(page, "Settings");
      await page
        .getByRole("dialog")
        .getByRole("button", { name: "Save" })
        .and(page.locator(":enabled"))
        .waitFor();
      await expectSound("settings");
      await page.keyboard.press("Escape");
      if (name === "wide-light")
        await lookAtDialogs(page, (state) => expectSound(state, { also: ["light", "dark"] }));
      // The browser reports that the command was refused.
      expect(problems.filter((problem) => !problem.includes("422"))).toEqual([]);
    },
    90_000,
  );
});

/** Looks at what is opened from the header and by keys. */
async function lookAtDialogs(page: Page, expectSound: (state: string) => Promise<void>): Promise<void> {
  await page.getByRole("button", { name: /^Model: / }).click();
  await page.getByRole("dialog", { name: "Model of this chat" }).waitFor();
  await expectSound("models");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  const search = page.getByRole("dialog", { name: "Search chats" });
  await search.getByRole("combobox").fill("plan");
  await search.locator("mark").first().waitFor();
  await expectSound("search");
  await page.keyboard.press("Escape");
  await chooseInAccount(page, "Keyboard shortcuts");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  await expectSound("shortcuts");
  await page.keyboard.press("Escape");
}
