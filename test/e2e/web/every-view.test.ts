import type { BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import { startScriptedGateway, type ScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { violations } from "./page-axe.ts";
import { fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

/** A folder for screenshots to look at. Default: none are taken. */
const shots = process.env["PAGE_SHOTS"];

const models = {
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ object: "list", data: [{ id: "m", object: "model", created: 1, owned_by: "t" }] }),
};

const english = [
  "## Plan\n\nA table, code and a formula:\n\n| Step | When |\n| --- | --- |\n| Draft | Monday |\n| Review | Tuesday |\n",
  "```js\nconst answer = 42; // a line that is rather long, so that it has to be scrolled on a phone\n```\n",
  "1. First, \\(a^2 + b^2\\)\n2. Second, with `code`\n\n> A quote.",
].join("\n");
const arabic =
  "## الخطة\n\n| الخطوة | الموعد |\n| --- | --- |\n| المسودة | الاثنين |\n\n1. أولاً، اكتب المسودة.\n2. ثم راجعها مع `npm test`.\n\n```sh\nnpm run check\n```";

/** What of the messages goes over the edges of the thread, except inside of what scrolls by itself. */
const cutOff = `[...document.querySelectorAll(".scroller *")]
  .filter((one) => {
    const { left, right, width } = one.getBoundingClientRect();
    const isCut = width > 1 && (left < -1 || right > document.querySelector(".scroller").clientWidth + document.querySelector(".scroller").getBoundingClientRect().left + 1);
    return isCut && one.closest("pre, .table-frame, math, .sr-only") === null;
  })
  .map((one) => one.tagName + "." + one.className)`;

const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
/** 1280 × 1024 at 400 %: what WCAG 1.4.10 asks for. */
const zoomed = { viewport: { width: 320, height: 256 } };
const views: readonly {
  readonly name: string;
  readonly options: BrowserContextOptions;
  readonly text: string;
}[] = [
  { name: "desktop", options: { viewport: { width: 1280, height: 800 } }, text: english },
  { name: "phone", options: phone, text: english },
  { name: "zoomed", options: zoomed, text: english },
  { name: "right-to-left", options: { viewport: { width: 1280, height: 800 } }, text: arabic },
  { name: "right-to-left-phone", options: phone, text: arabic },
];
const themes = ["light", "dark"] as const;

describe.skipIf(!has("chromium"))("every view of the page", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  let answer = english;

  beforeAll(async () => {
    gateway = await startScriptedGateway((request) =>
      request.path === "/v1/models" ? models : sse(chunk({ content: answer }, "stop"), done),
    );
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  /** No finding of axe, nothing wider than the window, and a screenshot where they are wanted. */
  async function expectSound(page: Page, name: string): Promise<void> {
    expect(await violations(page), name).toEqual([]);
    expect(
      await page.evaluate("document.documentElement.scrollWidth - innerWidth"),
      `${name}: wider than the window`,
    ).toBeLessThanOrEqual(0);
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
  }

  it.each(views.flatMap((view) => themes.map((colorScheme) => ({ ...view, colorScheme }))))(
    "is accessible and fits: $name, $colorScheme",
    async ({ name, options, text, colorScheme }) => {
      answer = text;
      const { page, problems } = await story.open({ ...options, colorScheme, reducedMotion: "reduce" });
      const at = (state: string) => `${name}-${colorScheme}-${state}`;
      await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
      await expectSound(page, at("welcome"));

      await page.getByTestId("picker").setInputFiles([fixturePath("picture.png"), fixturePath("notes.txt")]);
      await page.getByText("notes.txt").waitFor();
      await expectSound(page, at("files"));
      await page.getByTitle("Preview of notes.txt").click();
      await page
        .getByRole("dialog", { name: "Preview of notes.txt" })
        .getByText("This is what Parley")
        .waitFor();
      await expectSound(page, at("preview"));
      await page.keyboard.press("Escape");
      await say(page, text === arabic ? "اكتب لي خطة قصيرة" : "Write me a short plan");
      await page.locator(".markdown table").waitFor();
      await expectSound(page, at("thread"));
      expect(await page.evaluate(cutOff), at("thread")).toEqual([]);
      // What is read has the larger part of the window, however small that is.
      const heights = await page.evaluate<readonly number[]>(
        "[document.querySelector('.scroller').clientHeight, innerHeight]",
      );
      expect(heights[0]! / heights[1]!, at("thread")).toBeGreaterThan(0.35);

      await page.getByRole("button", { name: "Copy or download this chat" }).click();
      await page.getByRole("button", { name: "Copy as Markdown" }).waitFor();
      await expectSound(page, at("chat-menu"));
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: /^Enlarge picture/ }).click();
      await page.getByRole("dialog").waitFor();
      await expectSound(page, at("lightbox"));
      await page.keyboard.press("Escape");

      const drawer = page.getByRole("button", { name: "Conversations" });
      if (await drawer.isVisible()) await drawer.click();
      await expectSound(page, at("list"));
      const list = page.getByRole("navigation");
      await list.getByRole("link").first().hover();
      await list
        .getByRole("button", { name: /^Options of / })
        .first()
        .click();
      await list.getByRole("menuitem", { name: "Delete" }).click();
      await page.getByRole("button", { name: "Keep" }).waitFor();
      await expectSound(page, at("delete"));
      await page.getByRole("button", { name: "Keep" }).click();
      await page.getByRole("button", { name: "Settings" }).click();
      await page
        .getByRole("dialog")
        .getByRole("button", { name: "Save" })
        .and(page.locator(":enabled"))
        .waitFor();
      await expectSound(page, at("settings"));
      await page.keyboard.press("Escape");
      expect(problems).toEqual([]);
      await page.context().close();
    },
  );
});
