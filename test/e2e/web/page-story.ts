import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { startBrowser, type OpenedPage, type StartedBrowser } from "../../simulators/browser.ts";
import { runParley, type RunningParley } from "../process/run-parley.ts";

/** Parley as `npm start` runs it, and a real browser. */
export interface PageStory {
  readonly url: string;
  parley(): RunningParley;
  open(options?: BrowserContextOptions): Promise<OpenedPage>;
  /** Kills the process and starts it at the same address with the same data. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Absolute path of a test file. */
export const fixturePath = (name: string): string => join(import.meta.dirname, "../../fixtures", name);

/** Starts Parley with these settings, and Chromium. */
export async function startPageStory(settings: Readonly<Record<string, string>> = {}): Promise<PageStory> {
  const browser: StartedBrowser = await startBrowser();
  let parley = await runParley({ settings: { LOG_LEVEL: "warn", ...settings } });
  const [, url = ""] = await parley.says(/Page {5}on {3}(\S+)[\s\S]*Health/);
  return {
    url,
    parley: () => parley,
    open: (options) => browser.open(url, { viewport: { width: 1200, height: 800 }, ...options }),
    async restart() {
      const { folder } = parley;
      parley.process.kill("SIGKILL");
      await parley.ended;
      parley = await runParley({
        folder,
        settings: { LOG_LEVEL: "warn", ...settings, PORT: new URL(url).port },
      });
      await parley.says(/Health/);
    },
    async close() {
      await browser.close();
      await parley.remove();
    },
  };
}

/** The text field. */
export const field = (page: Page) => page.getByRole("textbox", { name: "Message" });

/** Sends a message and returns the text of its answer. */
export async function say(page: Page, text: string): Promise<string> {
  const answers = page.locator(".from-parley");
  const before = await answers.count();
  await field(page).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  return await answerAfter(page, before);
}

/** Chooses an item of the menu of a conversation in the list. */
export async function chooseInMenu(page: Page, title: string, item: string): Promise<void> {
  const list = page.getByRole("navigation");
  await list.getByRole("link", { name: title }).hover();
  await list.getByRole("button", { name: `Options of ${title}` }).click();
  await list.getByRole("menuitem", { name: item, exact: true }).click();
}

/** The text of the answer with this index, after it has ended and its Markdown is rendered. */
export async function answerAfter(page: Page, index: number): Promise<string> {
  const answer = page.locator(".from-parley").nth(index);
  await answer.and(page.locator(".is-finished, .is-failed")).waitFor();
  // The renderer is loaded by the first message; until then the text is shown as it was written.
  await answer.locator(".as-written").first().waitFor({ state: "detached" });
  return await answer.innerText();
}
