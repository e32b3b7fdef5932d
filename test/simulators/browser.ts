import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from "playwright-core";
import { chromiumPath } from "../support/requirements.ts";

export interface OpenedPage {
  readonly page: Page;
  /** Errors of scripts and of the console (violated policies included), and requests to other hosts. */
  readonly problems: string[];
}

/** The options that a window is opened with. */
export type WindowOptions = Pick<
  BrowserContextOptions,
  | "viewport"
  | "colorScheme"
  | "reducedMotion"
  | "locale"
  | "timezoneId"
  | "isMobile"
  | "hasTouch"
  | "deviceScaleFactor"
> & {
  /** Whether the story sets the time in this window with `page.clock`. It is used for nothing else. */
  readonly isTimed?: boolean;
};

/** The windows of this worker's one Chromium. */
export interface Windows {
  /** Opens a page in a window without cookies and without stored data. */
  open(url: string, options?: WindowOptions): Promise<OpenedPage>;
  /** Empties all open windows, so that the next story can use them. */
  leave(): Promise<void>;
}

interface Window extends OpenedPage {
  /** The options that a context keeps for its whole life. */
  readonly kind: string;
  readonly context: BrowserContext;
  isTimed: boolean;
  host: string;
  isTaken: boolean;
}

let launched: Promise<Browser> | undefined;

/**
 * Creates the windows of this worker's Chromium, which ends with the worker. A window that was
 * left is used again. A new context would need a second process and load all scripts of the page anew.
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

/** Ends this worker's Chromium, for a script that goes on without it. */
export async function closeWindows(): Promise<void> {
  await (await launched)?.close();
  launched = undefined;
}

async function launch(): Promise<Browser> {
  return await chromium.launch({
    executablePath: chromiumPath,
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
