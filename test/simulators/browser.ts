import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from "playwright-core";

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

/** What a window is opened with. */
export type WindowOptions = Pick<
  BrowserContextOptions,
  "viewport" | "colorScheme" | "reducedMotion" | "locale" | "timezoneId" | "isMobile" | "hasTouch"
> & {
  /** The story gives the time in this window, by `page.clock`. It is used for nothing else. */
  readonly isTimed?: boolean;
};

/** Windows of the one Chromium of this worker. */
export interface Windows {
  /** A window that shows a page, without cookies and without anything that was stored for it. */
  open(url: string, options?: WindowOptions): Promise<OpenedPage>;
  /** Empties all windows that were opened, for whoever opens the next. */
  leave(): Promise<void>;
}

interface Window extends OpenedPage {
  /** The options that a context has for its whole life. */
  readonly kind: string;
  readonly context: BrowserContext;
  isTimed: boolean;
  host: string;
  isTaken: boolean;
}

/** Starts Chromium without a window, with a microphone that beeps and may be used. */
export async function startBrowser(): Promise<StartedBrowser> {
  const browser = await launch();
  return {
    async open(url, options = {}) {
      const window = await openWindow(browser, "", options);
      window.host = new URL(url).host;
      await window.page.goto(url);
      return window;
    },
    close: () => browser.close(),
  };
}

let launched: Promise<Browser> | undefined;

/**
 * Windows of the Chromium of this worker, which ends with it. A window that was left is opened again: a new context takes
 * a second process of Chromium and loads all scripts of the page anew, which is most of what a short story costs.
 */
export function createWindows(): Windows {
  const windows: Window[] = [];
  return {
    async open(url, { viewport, colorScheme, reducedMotion, ...fixed } = {}) {
      launched ??= launch();
      const browser = await launched;
      const kind = JSON.stringify(fixed);
      const { host } = new URL(url);
      let window = windows.find((one) => one.kind === kind && !one.isTaken);
      if (window === undefined) {
        const { isTimed = false, ...options } = fixed;
        window = await openWindow(browser, kind, options);
        window.isTimed = isTimed;
        if (isTimed) await window.page.clock.install();
        windows.push(window);
      }
      window.isTaken = true;
      window.host = host;
      window.problems.splice(0);
      const { page } = window;
      await page.setViewportSize(viewport ?? { width: 1200, height: 800 });
      await page.emulateMedia({ colorScheme: colorScheme ?? "light", reducedMotion: reducedMotion ?? null });
      await page.goto(url);
      return window;
    },
    async leave() {
      for (const window of windows.filter(({ isTaken }) => isTaken)) {
        const { page, context } = window;
        if (window.isTimed) {
          windows.splice(windows.indexOf(window), 1);
          await context.close();
          continue;
        }
        for (const other of context.pages()) if (other !== page) await other.close();
        await page.unrouteAll({ behavior: "ignoreErrors" });
        await page.goto("about:blank");
        await context.clearCookies();
        const devtools = await context.newCDPSession(page);
        await devtools.send("Storage.clearDataForOrigin", {
          origin: `http://${window.host}`,
          storageTypes: "local_storage",
        });
        await devtools.detach();
        window.isTaken = false;
      }
    },
  };
}

/** Ends the Chromium of this worker, where a script goes on without it. */
export async function closeWindows(): Promise<void> {
  await (await launched)?.close();
  launched = undefined;
}

async function launch(): Promise<Browser> {
  return await chromium.launch({
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
}

async function openWindow(browser: Browser, kind: string, options: BrowserContextOptions): Promise<Window> {
  const context = await browser.newContext({ ...options, permissions: ["microphone"] });
  const page = await context.newPage();
  const problems: string[] = [];
  const window = { kind, context, page, problems, host: "", isTaken: false, isTimed: false };
  page.on("pageerror", (error) => problems.push(`script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const address = new URL(request.url());
    if (address.protocol.startsWith("http") && address.host !== window.host)
      problems.push(`outside request: ${request.url()}`);
  });
  return window;
}
