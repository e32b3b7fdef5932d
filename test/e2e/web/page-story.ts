import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startParley, type Parley } from "../../../src/compose.ts";
import { parseConfig, type Config } from "../../../src/config.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { createEmbeddedGateway } from "../../../src/embedded-gateway/embedded-gateway.ts";
import { createRecentProblems } from "../../../src/operations/dashboard/recent-problems.ts";
import { createLog } from "../../../src/operations/log.ts";
import { createWindows, type OpenedPage, type WindowOptions } from "../../simulators/browser.ts";
import { allCommands } from "../../support/commands.ts";
import { silentLog } from "../../support/silent-log.ts";

/** Parley with its page, and windows of a real browser. */
export interface PageStory {
  readonly url: string;
  /** The store and the uploads are in `data/` below it. */
  readonly folder: string;
  readonly config: Config;
  /** Opens the page in a window. Errors that it logs, or fails to load, end up in `problems`. */
  open(options?: WindowOptions): Promise<OpenedPage>;
  /** Empties the windows. */
  leave(): Promise<void>;
  /** Stops Parley. */
  stop(): Promise<void>;
  /** Starts it again at the same address with the same data. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Returns the absolute path of a test file. */
export const fixturePath = (name: string): string => join(import.meta.dirname, "../../fixtures", name);

const windows = createWindows();
const sandboxKey = "key-of-the-sandbox";
let sandbox: Promise<string> | undefined;

/** Starts the sandbox, which answers at once. All stories of this worker share one. */
async function startSandbox(): Promise<string> {
  const gateway = createEmbeddedGateway({
    host: "127.0.0.1",
    port: 0,
    apiKeys: [sandboxKey],
    log: silentLog,
    sandboxWordDelayMs: 0,
  });
  return (await gateway.listen()).url;
}

/** The options of {@link startPageStory}. */
export interface PageStoryOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** The time that Parley lives in. The default is that of this process. */
  readonly clock?: Clock;
}

/** Starts Parley in this process, with a new store and folder. By default the sandbox answers. */
export async function startPageStory({ settings = {}, clock }: PageStoryOptions = {}): Promise<PageStory> {
  const folder = await mkdtemp(join(tmpdir(), "parley-page-"));
  const config = parseConfig({
    HOST: "127.0.0.1",
    PORT: "0",
    LOG_LEVEL: "warn",
    STORE_URL: `sqlite:${join(folder, "data", "parley.db")}`,
    SHUTDOWN_TIMEOUT_MS: "50",
    // Stories count requests. The one about titles sets it.
    PAGE_TITLES: "first-words",
    ...(settings["GATEWAY_BASE_URL"] === undefined
      ? {
          GATEWAY_BASE_URL: await (sandbox ??= startSandbox()),
          GATEWAY_API_KEY: sandboxKey,
          CHAT_MODEL: "sandbox/chat",
          IMAGE_MODEL: "sandbox/image",
          TRANSCRIPTION_MODEL: "sandbox/transcribe",
        }
      : {}),
    ...settings,
  });
  const start = async (port: number): Promise<Parley> => {
    const problems = createRecentProblems();
    const log = createLog({
      level: config.LOG_LEVEL,
      secrets: config.secrets,
      write: (line) => problems.take(line),
    });
    const parts = { commands: allCommands, log, problems, ...(clock === undefined ? {} : { clock }) };
    const started = await startParley({ ...config, PORT: port }, parts);
    await started.connected;
    return started;
  };
  let parley: Parley | undefined = await start(0);
  const { url } = parley;
  const stop = async (): Promise<void> => {
    await parley?.stop();
    parley = undefined;
  };
  return {
    url,
    folder,
    config,
    open: (options) => windows.open(url, options),
    leave: () => windows.leave(),
    stop,
    async start() {
      parley = await start(Number(new URL(url).port));
    },
    async close() {
      await windows.leave();
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Returns the text field. */
export const field = (page: Page) => page.getByRole("textbox", { name: "Message" });

/** Writes a message and sends it with Enter. */
export async function send(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await field(page).press("Enter");
}

/** Sends a message and returns the text of its answer. */
export async function say(page: Page, text: string): Promise<string> {
  const answers = page.locator(".from-parley");
  const before = await answers.count();
  await field(page).fill(text);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  return await answerAfter(page, before);
}

/** Attaches a file of the fixtures, and waits until it is stored. */
export async function attach(page: Page, name: string): Promise<void> {
  await page.getByTestId("picker").setInputFiles(fixturePath(name));
  await page.getByRole("list", { name: "Files to send" }).getByText(name).waitFor();
}

/** Chooses an item of the menu of a conversation in the list. */
export async function chooseInMenu(page: Page, title: string, item: string): Promise<void> {
  const list = page.getByRole("navigation");
  await list.getByRole("link", { name: title }).hover();
  await list.getByRole("button", { name: `Options of ${title}` }).click();
  await list.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Chooses an item of the menu at the foot of the list. */
export async function chooseInAccount(page: Page, item: string): Promise<void> {
  await page.getByRole("button", { name: "Account and settings" }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
}

/** Returns the text of the answer with this index, after it has ended and its Markdown is rendered. */
export async function answerAfter(page: Page, index: number): Promise<string> {
  const answer = page.locator(".from-parley").nth(index);
  await answer.and(page.locator(".is-finished, .is-failed")).waitFor();
  // The renderer is loaded by the first message. Until then the text is shown as it was written.
  await answer.locator(".as-written").first().waitFor({ state: "detached" });
  return await answer.innerText();
}
