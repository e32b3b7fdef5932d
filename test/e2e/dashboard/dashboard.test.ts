import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { DashboardData } from "../../../src/operations/dashboard/dashboard-data.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "../web/page-axe.ts";
import { say, type PageStory } from "../web/page-story.ts";
import { usePage, useScriptedPage } from "../web/use-page.ts";

/** How often the dashboard asks for new data, in milliseconds. */
const everyMs = 5000;
const status = (page: Page) => page.getByRole("status");

async function openDashboard(story: PageStory, page: Page): Promise<void> {
  await page.goto(`${story.url}/admin`);
  await status(page).filter({ hasText: "version" }).waitFor();
}

async function dataOf(story: PageStory): Promise<DashboardData> {
  return (await (await fetch(`${story.url}/admin/data`)).json()) as DashboardData;
}

describe.skipIf(!has("chromium"))("the dashboard", () => {
  const story = usePage({ settings: { BUDGET_DAY_USD: "5" } });

  it("shows the state, what was used and by whom, and nothing that was said", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    await openDashboard(story, page);
    const text = await page.locator("main").innerText();
    expect(text).toMatch(/store\s+ready/);
    expect(text).toMatch(/gateway\s+ready/);
    expect(text).toMatch(/web\s+ready/);
    expect(text).toContain("sandbox/chat");
    expect(text).toContain("web:local");
    expect(text).toMatch(/of 5\.00 USD/);
    expect(text).not.toContain("Juniper");
    expect(await page.locator(".uplot canvas").count()).toBe(4);
    const data = await dataOf(story);
    expect(data).toMatchObject({ status: "ready", budgets: { dayUsd: 5 }, usage: { total: { calls: 1 } } });
    expect(data.platforms).toMatchObject([{ id: "web", lastEventAt: expect.any(Number), reconnects: 0 }]);
    expect(data.minutes.reduce((sum, { turns }) => sum + turns, 0)).toBe(1);
    expect(data.store.bytes).toBeGreaterThan(0);
    expect(JSON.stringify(data)).not.toContain("Juniper");
    expect(problems).toEqual([]);
  });

  it("passes axe-core and fits the screen, on a desk and dark on a phone", async () => {
    const { page, problems } = await story.open();
    await say(page, "hello");
    await openDashboard(story, page);
    for (const { viewport, colorScheme } of [
      { viewport: { width: 1200, height: 800 }, colorScheme: "light" },
      { viewport: { width: 360, height: 740 }, colorScheme: "dark" },
    ] as const) {
      await page.setViewportSize(viewport);
      await page.emulateMedia({ colorScheme });
      expect(await violations(page), colorScheme).toEqual([]);
      const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
      expect(await page.evaluate<number>(overflow), colorScheme).toBeLessThanOrEqual(0);
    }
    expect(problems).toEqual([]);
  });

  it("says so when Parley does not respond, and goes on when it is back", async () => {
    const { page } = await story.open({ isTimed: true });
    await openDashboard(story, page);
    await story.stop();
    await page.clock.runFor(everyMs);
    await status(page).filter({ hasText: "does not respond" }).waitFor();
    await story.start();
    await page.clock.runFor(everyMs);
    await status(page).filter({ hasText: "version" }).waitFor();
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
    expect(await admin.locator("#problems").innerText()).toContain("None");
    await say(page, "hello");
    await admin.clock.runFor(everyMs);
    await admin.getByText("req-77").first().waitFor();
    expect((await dataOf(story)).gateway.errors).toMatchObject([
      { requestId: "req-77", code: expect.stringMatching(/^gateway-/) },
    ]);
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
