import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { WindowOptions } from "../../simulators/browser.ts";
import { json } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, attach, say } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

/** A folder for screenshots to look at. By default none are taken. */
const shots = process.env["PAGE_SHOTS"];

async function shoot(page: Page, name: string): Promise<void> {
  if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png`, fullPage: true });
}

const text = [
  "A formula of its own:\n\n$$\\int_0^1 x\\,dx = \\frac{1}{2}$$\n",
  "| left | middle | right |\n| :--- | :---: | ---: |\n| a name of some length | b | 1.50 |\n| d | e is longer | 1,000.00 |\n",
  "```js\nconst answer = 42; // a line that is rather long, so that it would have to be scrolled on paper, where nobody can\n```\n",
  "and an inline $$y$$ in a line.",
].join("\n");

const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
const wide = { viewport: { width: 1280, height: 800 } };
const windows: readonly (WindowOptions &
  typeof wide & { readonly name: string; readonly isPhone: boolean })[] = [
  { name: "wide-light", ...wide, colorScheme: "light", isPhone: false },
  { name: "phone-dark", ...phone, colorScheme: "dark", isPhone: true },
];

describe.skipIf(!has("chromium"))("the look of what is said on the page", () => {
  const { story, script } = useScriptedPage({
    settings: { TRANSCRIPTION_MODEL: "m" },
    usual: ({ path }) =>
      path.includes("transcriptions") ? json(JSON.stringify({ text: "What was said." })) : whole(text),
  });

  for (const { name, isPhone, ...options } of windows) {
    it(`has blocks, columns, a player and a footer as they should be: ${name}`, async () => {
      const { page } = await story.open(options);
      await say(page, "Show me");
      const answer = page.locator(".from-parley").first();
      await answer.locator(".formula.is-block math").waitFor();
      await answer.locator(".formula:not(.is-block) math").waitFor();
      const [block, thread] = [
        await answer.locator(".formula.is-block").boundingBox(),
        await answer.boundingBox(),
      ];
      expect(block?.width).toBe(thread?.width);
      const aligned = await page.evaluate(
        `[...document.querySelectorAll("tbody tr:first-child td")].map((cell) => getComputedStyle(cell).textAlign.replace("-webkit-", ""))`,
      );
      expect(aligned).toEqual(["left", "center", "right"]);

      await attach(page, "voice.ogg");
      await page.getByRole("textbox", { name: "Message" }).fill("/transcribe");
      await page.getByRole("button", { name: "Send", exact: true }).click();
      await answerAfter(page, 1);
      const players = page.locator(".from-user audio");
      for (const isReloaded of [false, true]) {
        if (isReloaded) await page.reload();
        await expect.poll(async () => (await players.boundingBox())?.width ?? 0).toBeGreaterThan(280);
        const { x = -1, width = 0 } = (await players.boundingBox()) ?? {};
        expect(x).toBeGreaterThan(0);
        expect(x + width).toBeLessThan(options.viewport.width);
      }

      // There is no trouble, so there is no line above the chat.
      expect(await page.locator(".connection").isVisible()).toBe(false);
      const foot = answer.locator(".foot");
      expect(await violations(page)).toEqual([]);
      await shoot(page, name);
      if (isPhone) {
        const tops = await foot
          .locator(":scope > *")
          .evaluateAll((all) =>
            all.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => (top + bottom) / 2),
          );
        expect(Math.max(...tops) - Math.min(...tops)).toBeLessThan(6);
        const { x = 0, width = 0 } = (await foot.getByRole("button").last().boundingBox()) ?? {};
        expect(x + width).toBeLessThanOrEqual(390);
      }
      for (const label of ["Copy this answer", "Details", "Branch"])
        await foot.getByRole("button", { name: label, exact: true }).waitFor();
      expect(script.left()).toBe(0);
    });
  }

  it("on paper, it is the conversation alone, whole and dark on white", async () => {
    const { page } = await story.open({ ...wide, colorScheme: "dark" });
    for (const question of ["One", "Two", "Three"]) await say(page, question);
    await page.emulateMedia({ media: "print" });
    const hidden = "nav, header button, textarea, .foot button, .copy-code, .question-foot button, .skip";
    for (const one of await page.locator(hidden).all()) expect(await one.isVisible()).toBe(false);
    for (const who of ["You", "Parley"])
      expect((await page.getByRole("heading", { name: who }).first().boundingBox())?.height).toBeGreaterThan(
        10,
      );
    expect(
      await page.evaluate(
        `document.querySelector(".scroller").scrollHeight <= document.querySelector(".scroller").clientHeight`,
      ),
    ).toBe(true);
    expect(
      await page.evaluate(
        `[...document.querySelectorAll("pre, .table-frame")].every(({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth)`,
      ),
    ).toBe(true);
    expect(await page.evaluate(`getComputedStyle(document.body).backgroundColor`)).toBe("rgb(255, 255, 255)");
    await shoot(page, "print");
  });
});
