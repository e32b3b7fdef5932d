import type { Page } from "playwright-core";
import { afterEach, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { runParley } from "../process/run-parley.ts";
import { violations } from "./page-axe.ts";
import { field, say, startPageStory, type PageStory } from "./page-story.ts";

const shots = process.env["PAGE_SHOTS"];

describe.skipIf(!has("chromium"))("accounts on the page", () => {
  let story: PageStory;
  afterEach(() => story?.close());

  /** `npm run account` beside the running bot. */
  async function account(words: string, input = ""): Promise<string> {
    const command = await runParley({
      args: ["account", ...words.split(" ")],
      folder: story.parley().folder,
      input,
    });
    expect(await command.ended, command.output()).toBe(0);
    return command.output();
  }

  const add = (name: string) => account(`add ${name} --password-stdin`, `password of ${name}\n`);

  async function logIn(page: Page, name: string, password = `password of ${name}`): Promise<void> {
    await expect
      .poll(
        async () => {
          await page.goto(story.url);
          return await page.getByLabel("Name").isVisible();
        },
        { timeout: 10_000 },
      )
      .toBe(true);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
  }

  const cookieOf = async (page: Page) =>
    (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");

  it("each see their own chats alone; who is removed sees nothing any more", async () => {
    story = await startPageStory({ ADMINS: "web:user:anna" });
    const { page: before } = await story.open();
    await say(before, "Said before there were accounts");
    await add("anna");
    await add("ben");

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

    // ADMINS lists anna: the dashboard is open to her also from elsewhere.
    const dashboard = async (page: Page) =>
      (
        await fetch(`${story.url}/admin/data`, {
          headers: { cookie: await cookieOf(page), "x-forwarded-for": "192.0.2.7" },
        })
      ).status;
    expect(await dashboard(anna)).toBe(200);
    expect(await dashboard(ben)).toBe(403);

    expect(await account("remove anna --erase-chats")).toContain("erases its chats");
    await expect.poll(() => account("list"), { timeout: 20_000 }).not.toContain("anna");
    await anna.reload();
    await anna.getByLabel("Name").waitFor();
    await add("anna");
    await logIn(anna, "anna");
    await field(anna).waitFor();
    expect(await anna.locator(".conversations a").count()).toBe(0);
    expect(problems.filter((one) => !/status of 401/.test(one))).toEqual([]);
  });

  it("change their own password in the settings", async () => {
    story = await startPageStory();
    await add("anna");
    for (const colorScheme of ["light", "dark"] as const) {
      const { page } = await story.open({ colorScheme });
      await page.getByLabel("Name").waitFor();
      expect(await violations(page)).toEqual([]);
      if (shots !== undefined) await page.screenshot({ path: `${shots}/login-${colorScheme}.png` });
      await page.context().close();
    }
    const { page: elsewhere } = await story.open();
    await logIn(elsewhere, "anna");
    const { page } = await story.open();
    await logIn(page, "anna", "wrong");
    await page.getByRole("alert").getByText("The name or the password is wrong.").waitFor();
    await page.getByLabel("Password").fill("password of anna");
    await page.keyboard.press("Enter");

    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByText("Logged in as anna").waitFor();
    await page.getByRole("button", { name: "Change password" }).click();
    const dialog = page.getByRole("dialog", { name: "Change password" });
    await dialog.waitFor();
    expect(await violations(page)).toEqual([]);
    if (shots !== undefined) await page.screenshot({ path: `${shots}/password.png` });
    await dialog.getByLabel("Present password").fill("wrong");
    await dialog.getByLabel("New password").fill("another password");
    await page.keyboard.press("Enter");
    await dialog.getByRole("alert").getByText("That is not the password.").waitFor();
    await dialog.getByLabel("Present password").fill("password of anna");
    await page.keyboard.press("Enter");
    await page.getByText("The password is changed.").waitFor();
    if (shots !== undefined) await page.screenshot({ path: `${shots}/password-changed.png` });
    await page.getByRole("button", { name: "Close" }).click();
    expect(await say(page, "Still here")).toContain("sandbox");
    await elsewhere.reload();
    await elsewhere.getByLabel("Name").waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await logIn(page, "anna", "another password");
    await field(page).waitFor();
  });

  it("are refused by DENY, and by a budget that is spent, as people elsewhere are", async () => {
    story = await startPageStory({ DENY: "web:user:ben", TURNS_PERSON_MINUTE: "1" });
    await add("anna");
    await add("ben");
    const { page: ben } = await story.open();
    await logIn(ben, "ben");
    await field(ben).fill("hello");
    await ben.keyboard.press("Enter");
    await ben
      .getByRole("alert")
      .getByText(/its access rules exclude you/)
      .waitFor();
    const { page: anna } = await story.open();
    await logIn(anna, "anna");
    expect(await say(anna, "One")).toContain("sandbox");
    await field(anna).fill("Two");
    await anna.keyboard.press("Enter");
    await anna
      .getByRole("alert")
      .getByText(/minute/)
      .waitFor();
    await anna.context().close();
  });
});
