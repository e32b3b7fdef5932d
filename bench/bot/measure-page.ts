import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Page } from "playwright-core";
import { startBrowser, type StartedBrowser } from "../../test/simulators/browser.ts";
import { startChild, type Child } from "./child.ts";
import type { Note } from "./figures.ts";

const main = path.join(import.meta.dirname, "..", "..", "src", "main.ts");
const startWithinMs = 30_000;
/** The highest transfer of an empty chat until it can be used, in kB (10^3 bytes). */
const maxEmptyKb = 60;

/** What a browser with an empty cache needed, with times since the start of the navigation in ms. */
interface Visit {
  readonly firstPaintMs: number;
  readonly usableMs: number;
  /** The compressed bodies of everything that had arrived by then. */
  readonly kilobytes: number;
}

/**
 * Measures the page in Chromium with an empty cache: the transfer, the first paint and the time until the
 * text field is there, for an empty chat and for one with a long answer.
 * @throws Error without Chromium
 */
export async function measurePage({ visits }: { readonly visits: number }, note: Note): Promise<void> {
  const folder = await mkdtemp(path.join(tmpdir(), "parley-page-"));
  let browser: StartedBrowser | undefined;
  let child: Child | undefined;
  try {
    child = startChild([main], { PORT: "0", STORE_URL: `sqlite:${folder}/parley.db`, LOG_LEVEL: "error" });
    const url = await urlOf(child);
    browser = await startBrowser();
    const chat = await makeChat(browser, url);
    for (let index = 0; index < visits; index += 1) {
      for (const [name, address] of [
        ["an empty chat", url],
        ["a chat with an answer", chat],
      ] as const) {
        const isEmpty = address === url;
        const visit = await visitPage(browser, address, { isEmpty });
        const figure = (what: string) => ({ group: `page, ${name}`, name: what });
        note({ ...figure("first paint"), unit: "ms" }, "parley", visit.firstPaintMs);
        note({ ...figure("usable"), unit: "ms" }, "parley", visit.usableMs);
        note(
          {
            ...figure("compressed, until usable"),
            unit: "kB",
            aim: isEmpty ? { kind: "at-most", value: maxEmptyKb } : undefined,
          },
          "parley",
          visit.kilobytes,
        );
      }
    }
  } finally {
    await browser?.close();
    await child?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function urlOf(child: Child): Promise<string> {
  const deadline = performance.now() + startWithinMs;
  for (;;) {
    const [, url] = /Page {5}on {3}(\S+)[\s\S]*Health/.exec(child.output()) ?? [];
    if (url !== undefined) return url;
    child.check();
    if (performance.now() > deadline) throw new Error(`the page did not start: ${child.output()}`);
    await delay(50);
  }
}

/** The address of a chat with one answer that has all kinds of Markdown. */
async function makeChat(browser: StartedBrowser, url: string): Promise<string> {
  const { page } = await browser.open(url);
  await textField(page).fill("Show all Markdown");
  await page.keyboard.press("Enter");
  await page.locator(".from-parley.is-finished").waitFor();
  const address = page.url();
  await page.context().close();
  return address;
}

async function visitPage(
  browser: StartedBrowser,
  address: string,
  { isEmpty }: { readonly isEmpty: boolean },
): Promise<Visit> {
  const { page } = await browser.open("about:blank");
  const shown = isEmpty ? "textarea" : ".from-parley .markdown table";
  await page.addInitScript(`new MutationObserver((_, observer) => {
    if (document.querySelector(${JSON.stringify(shown)}) === null) return;
    performance.mark("usable");
    observer.disconnect();
  }).observe(document, { childList: true, subtree: true });`);
  await page.goto(address, { waitUntil: "commit" });
  await page.locator(shown).first().waitFor();
  const visit = await page.evaluate<Visit>(`(() => {
    const usableMs = performance.getEntriesByName("usable")[0].startTime;
    const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const before = entries.filter(({ responseEnd }) => responseEnd > 0 && responseEnd <= usableMs);
    return {
      usableMs,
      firstPaintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
      kilobytes: before.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0) / 1000,
    };
  })()`);
  await page.context().close();
  return visit;
}

function textField(page: Page) {
  return page.getByRole("textbox", { name: "Message" });
}
