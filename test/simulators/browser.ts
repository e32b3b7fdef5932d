import { chromium, type Browser, type BrowserContextOptions, type Page } from "playwright-core";

/** A real Chromium, as Debian ships it. */
export interface StartedBrowser {
  /** A page in a context of its own. What the page logs as an error, or fails to load, ends up in `problems`. */
  open(url: string, options?: BrowserContextOptions): Promise<OpenedPage>;
  close(): Promise<void>;
}

export interface OpenedPage {
  readonly page: Page;
  /** Errors of scripts, of the console (broken policies among them) and requests to other hosts. */
  readonly problems: string[];
}

/** Starts Chromium without a window, with a microphone that beeps and may be used. */
export async function startBrowser(): Promise<StartedBrowser> {
  const browser: Browser = await chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--use-fake-device-for-media-stream",
      "--use-fake-ui-for-media-stream",
    ],
  });
  return {
    async open(url, options = {}) {
      const context = await browser.newContext({ ...options, permissions: ["microphone"] });
      const page = await context.newPage();
      const problems: string[] = [];
      const { host } = new URL(url);
      page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
      page.on("console", (message) => {
        if (message.type() === "error") problems.push(`console: ${message.text()}`);
      });
      page.on("request", (request) => {
        const address = new URL(request.url());
        if (address.protocol.startsWith("http") && address.host !== host)
          problems.push(`outside request: ${request.url()}`);
      });
      await page.goto(url);
      return { page, problems };
    },
    close: () => browser.close(),
  };
}
