import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { DashboardData } from "../../../src/operations/dashboard/dashboard-data.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "../web/page-axe.ts";
import { say, type PageStory, chooseInAccount } from "../web/page-story.ts";
import { usePage, useScriptedPage, whole } from "../web/use-page.ts";

/** How often the dashboard asks for new data, in milliseconds. */
const everyMs = 5000;
const status = (page: Page) => page.getByRole("status");

async function openDashboard(story: PageStory, page: Page): Promise<void> {
  await page.goto(`${story.url}/admin`);
  await page.getByText(/^As of .* Version /).waitFor();
}

async function dataOf(story: PageStory): Promise<DashboardData> {
  return (await (await fetch(`${story.url}/admin/data`)).json()) as DashboardData;
}

describe.skipIf(!has("chromium"))("the dashboard", () => {
  const story = usePage({ settings: { BUDGET_DAY_USD: "5" } });

  it("answers at a glance: is all well, what is slow, what does it cost and whom, what is full", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    await openDashboard(story, page);
    expect(await status(page).innerText()).toBe("All is well.");
    const text = await page.locator("main").innerText();
    expect(text).toContain("0 of 1 (0%)");
    expect(text).toMatch(/store\s+works/);
    expect(text).toMatch(/web\s+works/);
    expect(text).toContain("Nothing since the start.");
    const slow = page.getByRole("region", { name: "Models today (UTC)" });
    expect(await slow.locator("tbody tr").innerText()).toMatch(/^sandbox\/chat(\s+[\d.]+s){4}\s+1\s+0$/);
    // The person has a name, and no id.
    expect(await page.getByRole("region", { name: "By person" }).innerText()).toMatch(
      /\n(?!web:)\S.*\t\$0(?!\d|\.)/,
    );
    expect(text).not.toContain("web:local");
    expect(await page.locator("#full").innerText()).toContain("$0 of $5.00 (0%)");
    expect(text).not.toContain("Juniper");
    expect(await page.locator(".uplot canvas").count()).toBe(5);
    const data = await dataOf(story);
    expect(data).toMatchObject({ status: "ready", budgets: { dayUsd: 5 }, usage: { total: { calls: 1 } } });
    expect(data.platforms).toMatchObject([{ id: "web", lastEventAt: expect.any(Number), reconnects: 0 }]);
    expect(data.day).toMatchObject({ turns: 1, failed: 0 });
    expect(data.store.bytes).toBeGreaterThan(0);
    expect(JSON.stringify(data)).not.toContain("Juniper");
    await page.getByRole("link", { name: "To the chats" }).click();
    await page.getByRole("textbox", { name: "Message" }).waitFor();
    await chooseInAccount(page, "Settings");
    await page.getByRole("link", { name: "Dashboard, for those who run Parley" }).click();
    await page.waitForURL(`${story.url}/admin`);
    await status(page).filter({ hasText: "All is well." }).waitFor();
    expect(problems).toEqual([]);
  });

  it("passes axe-core, fits the screen and breaks no heading, on a desk and on a phone, light and dark", async () => {
    const { page, problems } = await story.open();
    await say(page, "hello");
    await openDashboard(story, page);
    for (const width of [1280, 390])
      for (const colorScheme of ["light", "dark"] as const) {
        await page.setViewportSize({ width, height: 844 });
        await page.emulateMedia({ colorScheme });
        const where = `${width} ${colorScheme}`;
        expect(await violations(page), where).toEqual([]);
        const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        expect(await page.evaluate<number>(overflow), where).toBeLessThanOrEqual(0);
        // A heading has at most one line for each of its words.
        const broken = `[...document.querySelectorAll("thead th")].flatMap((th) => {
          const range = document.createRange();
          range.selectNodeContents(th);
          const lines = new Set([...range.getClientRects()].map(({ top }) => top)).size;
          return lines > th.textContent.split(/[ -]/).length ? [th.textContent] : [];
        })`;
        expect(await page.evaluate<string[]>(broken), where).toEqual([]);
      }
    expect(problems).toEqual([]);
  });

  it("has the theme that was chosen on the page", async () => {
    const { page } = await story.open({ colorScheme: "light" });
    await page.evaluate(`localStorage.setItem("theme", "dark")`);
    await openDashboard(story, page);
    expect(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor")).toBe(
      "rgb(20, 24, 27)",
    );
  });

  it("speaks the language of the browser", async () => {
    const { page } = await story.open({ locale: "de-DE" });
    await page.goto(`${story.url}/admin`);
    await status(page).filter({ hasText: "Alles ist in Ordnung." }).waitFor();
    expect(await page.title()).toBe("Parley-Übersicht");
    expect(await page.locator("#full").innerText()).toMatch(/0\s\$ von 5,00\s\$/);
    expect(await page.evaluate<string>("document.documentElement.lang")).toBe("de");
  });

  it("shows all digits at its axes, whatever the language writes around them", async () => {
    const { page } = await story.open({ locale: "de-DE" });
    // What a canvas shows can only be seen where it is drawn.
    await page.addInitScript(`
      globalThis.cutOff = [];
      globalThis.drawn = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, x, ...rest) {
        globalThis.drawn.push(text);
        if (this.textAlign === "right" && x < this.measureText(text).width) globalThis.cutOff.push(text);
        return fillText.call(this, text, x, ...rest);
      };
    `);
    await page.route("**/admin/data", async (route) => {
      const data = (await (await route.fetch()).json()) as DashboardData;
      const today = new Date(data.time).toISOString().slice(0, 10);
      const days = [{ ...data.usage?.total, day: today, costUsd: 12_345.67 }];
      await route.fulfill({ json: { ...data, usage: { ...data.usage, days } } });
    });
    await page.goto(`${story.url}/admin`);
    await expect.poll(() => page.evaluate<string[]>("globalThis.drawn")).toContain("10.000,00\u00A0$");
    expect(await page.evaluate<string[]>("globalThis.cutOff")).toEqual([]);
  });

  it("says so when Parley does not respond, and goes on when it is back", async () => {
    const { page } = await story.open({ isTimed: true });
    await openDashboard(story, page);
    await story.stop();
    await page.clock.runFor(everyMs);
    await status(page).filter({ hasText: "does not respond" }).waitFor();
    await story.start();
    await page.clock.runFor(everyMs);
    await status(page).filter({ hasText: "All is well." }).waitFor();
  });
});

describe.skipIf(!has("chromium"))("the dashboard while a gateway fails", () => {
  const { story } = useScriptedPage({
    usual: () => ({
      status: 400,
      headers: { "x-request-id": "req-77" },
      body: '{"error":{"message":"no such thing"}}',
    }),
  });

  it("follows what happens while it is open, with the id of the request", async () => {
    const { page } = await story.open();
    const { page: admin } = await story.open({ isTimed: true });
    await openDashboard(story, admin);
    expect(await admin.locator("#problems").innerText()).toContain("Nothing since the start.");
    await say(page, "hello");
    await admin.clock.runFor(everyMs);
    await admin.getByText("req-77").first().waitFor();
    expect(await admin.locator("#problems").innerText()).toContain("→ Look at the gateway's own log");
    await say(page, "hello again");
    await admin.clock.runFor(everyMs);
    await status(admin).filter({ hasText: "2 of 2 answers failed in the last hour." }).waitFor();
    expect(await admin.locator("#failures").innerText()).toContain("2 of 2 (100%)");
    expect((await dataOf(story)).gateway.errors).toMatchObject(
      Array.from({ length: 2 }, () => ({
        requestId: "req-77",
        code: expect.stringMatching(/^gateway-/),
      })),
    );
  });
});

describe.skipIf(!has("chromium"))("the dashboard of models without a price", () => {
  const { story } = useScriptedPage({ usual: () => whole("Hello.") });

  it("counts a high one, marks it, and never says that it is nothing", async () => {
    const { page } = await story.open();
    await say(page, "hello");
    await openDashboard(story, page);
    for (const name of ["By person", "By model"])
      expect(await page.getByRole("region", { name }).locator("tbody tr").innerText()).toMatch(
        /^\S.*\t~\$0\.\d*[1-9]\d*\t1\b/,
      );
    expect(await page.locator("#usage").innerText()).toContain(
      "A model without a known price counts at a high one: MODEL_PRICES",
    );
    expect(await page.locator("#costs").innerText()).toMatch(
      /Spent today\s+~\$0\.\d*[1-9]\d*\s[^]*Calls at an assumed price\s+1$/,
    );
    expect(await page.locator("#cost-plot").getAttribute("aria-label")).toMatch(
      /^Cost \(~ in part estimated\): \$0\.\d*[1-9]/,
    );
  });
});

describe("the dashboard for others", () => {
  const forwarded = { "x-forwarded-for": "192.0.2.7" };

  describe("without ADMIN_PASSWORD", () => {
    const story = usePage();

    it("is closed", async () => {
      const closed = await fetch(`${story.url}/admin`, { headers: forwarded });
      expect([closed.status, await closed.text()]).toEqual([403, expect.stringContaining("ADMIN_PASSWORD")]);
    });
  });

  describe("with ADMIN_PASSWORD", () => {
    const story = usePage({ settings: { ADMIN_PASSWORD: "correct horse battery" } });

    it("asks for it, and serves nothing else", async () => {
      const asked = await fetch(`${story.url}/admin/data`, { headers: forwarded });
      expect([asked.status, asked.headers.get("www-authenticate")]).toEqual([
        401,
        expect.stringMatching(/^Basic /),
      ]);
      const authorization = `Basic ${Buffer.from("ops:correct horse battery").toString("base64")}`;
      const admitted = await fetch(`${story.url}/admin/data`, { headers: { ...forwarded, authorization } });
      expect(admitted.status).toBe(200);
      expect((await fetch(`${story.url}/admin/data`)).status).toBe(401);
      for (const path of ["/admin/other", "/admin/page/tsconfig.json", "/admin/dashboard-data.ts"])
        expect((await fetch(`${story.url}${path}`, { headers: { authorization } })).status).toBe(404);
      const post = { method: "POST", headers: { authorization } };
      expect((await fetch(`${story.url}/admin/data`, post)).status).toBe(405);
    });
  });
});
