import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openConfiguredStore } from "../../../src/compose-store.ts";
import { runAccountCommand } from "../../../src/platforms/web/accounts/account-commands.ts";
import { createAccounts } from "../../../src/platforms/web/accounts/accounts.ts";
import { has } from "../../support/requirements.ts";
import { silentLog } from "../../support/silent-log.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, field, say, send, type PageStory, chooseInAccount } from "./page-story.ts";
import { usePage } from "./use-page.ts";

describe.skipIf(!has("chromium"))("another site in the same browser", () => {
  // Access rules are for platforms. The page is open to whoever reaches it.
  const story = usePage({ settings: { ALLOW: "discord:guild:1234567890123456789", DENY: "slack:user:U1" } });
  let evil: ReturnType<typeof createServer> | undefined;
  afterEach(() => {
    evil?.closeAllConnections();
    evil?.close();
  });

  it("cannot send messages, read conversations or embed the page, which is open to its owner", async () => {
    evil = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<title>evil</title><body></body>");
    }).listen(0, "127.0.0.1");
    await once(evil, "listening");
    const { page } = await story.open();
    expect(await say(page, "A secret of mine")).toContain("sandbox");
    const [, id = ""] = /\/c\/(\w+)/.exec(page.url()) ?? [];
    await page.goto(`http://localhost:${(evil.address() as AddressInfo).port}/`);
    const tried = await page.evaluate<Record<string, unknown>>(`(async () => {
      const target = ${JSON.stringify(story.url)};
      const attempt = (path, options) => fetch(target + path, options).then((r) => r.status, () => "blocked");
      const body = JSON.stringify({ id: "x".repeat(24), text: "driven" });
      const path = "/api/conversations/${id}/messages";
      const image = await new Promise((resolve) => {
        const element = new Image();
        element.onload = () => resolve("loaded");
        element.onerror = () => resolve("blocked");
        element.src = target + "/page/icon.svg";
      });
      const frame = document.createElement("iframe");
      frame.src = target + "/";
      const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
      document.body.append(frame);
      await loaded;
      let framed = "blocked";
      try { framed = frame.contentDocument === null ? "blocked" : String(frame.contentDocument.title); } catch {}
      return {
        simple: await attempt(path, { method: "POST", mode: "no-cors", headers: { "content-type": "text/plain" }, body }),
        json: await attempt(path, { method: "POST", headers: { "content-type": "application/json", "x-parley": "1" }, body }),
        read: await attempt("/api/conversations", {}),
        events: await new Promise((resolve) => {
          const source = new EventSource(target + "/api/conversations/${id}/events");
          source.onmessage = source.onopen = () => resolve("open");
          source.onerror = () => { source.close(); resolve("blocked"); };
        }),
        image,
        framed,
      };
    })()`);
    expect(tried).toEqual({
      simple: "blocked",
      json: "blocked",
      read: "blocked",
      events: "blocked",
      image: "blocked",
      framed: "blocked",
    });
    await page.goto(`${story.url}/c/${id}`);
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(["A secret of mine"]);
    expect(page.frames()).toHaveLength(1);
  });
});

describe.skipIf(!has("chromium"))("the page's password", () => {
  const story = usePage({ settings: { PAGE_PASSWORD: "correct horse" } });
  const password = (page: Page) => page.getByLabel("Password of this page");

  it("is needed once, also over a restart", async () => {
    const { page } = await story.open();
    await password(page).waitFor();
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await violations(page), colorScheme).toEqual([]);
    }
    await password(page).fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("That is not the password.").waitFor();
    await password(page).fill("correct horse");
    await page.keyboard.press("Enter");
    expect(await say(page, "Let me in")).toContain("sandbox");
    const cookies = await page.context().cookies();
    expect(cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite])).toEqual([[true, "Strict"]]);
    // Sessions outlast the process.
    await story.stop();
    await story.start();
    await page.reload();
    await answerAfter(page, 0);
    await chooseInAccount(page, "Log out");
    await password(page).waitFor();
  });

  it("is not taken before the script of the login is there: the browser would send it by itself", async () => {
    const { page } = await story.open();
    const { promise: isWanted, resolve: want } = Promise.withResolvers<void>();
    await page.route("**/page/login.js", async (route) => {
      await isWanted;
      await route.continue();
    });
    await page.reload({ waitUntil: "commit" });
    await password(page).waitFor();
    await expect.poll(() => password(page).isDisabled()).toBe(true);
    want();
    await password(page).fill("correct horse");
    await page.keyboard.press("Enter");
    await field(page).waitFor();
  });
});

/** A clock for a Parley that runs fifty times as fast, so that it looks for account changes more often. */
const hurried = {
  ...systemClock,
  monotonic: () => 50 * systemClock.monotonic(),
  now: () => startedAt + 50 * (systemClock.now() - startedAt),
  after: (...[ms, ...rest]: Parameters<typeof systemClock.after>) => systemClock.after(ms / 50, ...rest),
};
const startedAt = systemClock.now();

describe.skipIf(!has("chromium"))("accounts on the page", () => {
  const story = usePage({
    settings: { ADMINS: "web:user:anna", DENY: "web:user:ben" },
    clock: hurried,
  });

  it("each see their own chats alone; who is removed sees nothing any more", async () => {
    const { page: before } = await story.open();
    await say(before, "Said before there were accounts");
    await account(story, "add anna --password-stdin", "password of anna");
    await account(story, "add ben --password-stdin", "password of ben");

    const { page: anna, problems } = await story.open();
    await logIn(anna, "anna");
    expect(await say(anna, "The vault code is 7319")).toContain("sandbox");
    const address = anna.url();
    expect(address).toMatch(/\/c\//);
    await expect
      .poll(() => anna.locator(".conversations a").allInnerTexts())
      .toEqual(["The vault code is 7319"]);

    const { page: ben } = await story.open();
    await logIn(ben, "Ben", "password of ben");
    await field(ben).waitFor();
    expect(await ben.locator(".conversations a").count()).toBe(0);
    await ben.goto(address);
    await ben.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
    expect(await ben.locator(".bubble").count()).toBe(0);
    // DENY names ben, so he is refused as people elsewhere are.
    await send(ben, "hello");
    await ben
      .getByRole("alert")
      .getByText(/its access rules exclude you/)
      .waitFor();

    expect(await account(story, "remove anna --erase-chats")).toContain("erases its chats");
    await expect.poll(() => account(story, "list")).not.toContain("anna");
    await anna.reload();
    await anna.getByLabel("Name").waitFor();
    // The name is free when the chats are erased.
    const again = () => account(story, "add anna --password-stdin", "password of anna");
    await vi.waitFor(again, { timeout: 15_000, interval: 100 });
    await logIn(anna, "anna");
    await field(anna).waitFor();
    expect(await anna.locator(".conversations a").count()).toBe(0);
    expect(problems.filter((one) => !/status of 401/.test(one))).toEqual([]);
  });

  it("change their own password in the settings", async () => {
    await account(story, "add cara --password-stdin", "password of cara");
    const { page: elsewhere } = await story.open();
    await waitForLogin(elsewhere);
    for (const colorScheme of ["light", "dark"] as const) {
      await elsewhere.emulateMedia({ colorScheme });
      expect(await violations(elsewhere), colorScheme).toEqual([]);
    }
    await logIn(elsewhere, "cara");
    await field(elsewhere).waitFor();
    const { page } = await story.open();
    await logIn(page, "cara", "wrong");
    await page.getByRole("alert").getByText("The name or the password is wrong.").waitFor();
    await page.getByLabel("Password").fill("password of cara");
    await page.keyboard.press("Enter");

    await chooseInAccount(page, "Settings");
    await page.getByText("Logged in as cara").waitFor();
    await page.getByRole("button", { name: "Change password" }).click();
    const dialog = page.getByRole("dialog", { name: "Change password" });
    await dialog.waitFor();
    expect(await violations(page)).toEqual([]);
    await dialog.getByLabel("Current password").fill("wrong");
    await dialog.getByLabel("New password").fill("another password");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("That is not the password.").waitFor();
    await dialog.getByLabel("Current password").fill("password of cara");
    await page.keyboard.press("Enter");
    await page.getByText("Your password has been changed.").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    expect(await say(page, "Still here")).toContain("sandbox");
    await elsewhere.reload();
    await elsewhere.getByLabel("Name").waitFor();
    await chooseInAccount(page, "Log out");
    await logIn(page, "cara", "another password");
    await field(page).waitFor();
  });
});

/** Runs `npm run account` beside the running bot. */
async function account(story: PageStory, words: string, password = ""): Promise<string> {
  const store = await openConfiguredStore(story.config, silentLog, { exclusive: false });
  try {
    return await runAccountCommand(words.split(" "), createAccounts(store.records), () =>
      Promise.resolve(password),
    );
  } finally {
    await store.close();
  }
}

/** Waits for a page that asks for a name, which it does as soon as Parley knows that there are accounts. */
async function waitForLogin(page: Page): Promise<void> {
  await expect
    .poll(async () => {
      await page.reload();
      return await page.getByLabel("Name").isVisible();
    })
    .toBe(true);
}

async function logIn(
  page: Page,
  name: string,
  password = `password of ${name.toLowerCase()}`,
): Promise<void> {
  await waitForLogin(page);
  await page.getByLabel("Name").fill(name);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
}
