import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterEach, describe, expect, it } from "vitest";
import type { DashboardData } from "../../../src/operations/dashboard/dashboard-data.ts";
import { startScriptedGateway } from "../../simulators/gateway/scripted-gateway.ts";
import { has } from "../../support/requirements.ts";
import { say, startPageStory, type PageStory } from "../web/page-story.ts";

const axe = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface Findings {
  readonly violations: readonly { readonly id: string }[];
}

describe.skipIf(!has("chromium"))("the dashboard", () => {
  let story: PageStory;
  afterEach(() => story?.close());

  const dashboardOf = async (page: Page) => {
    await page.goto(`${story.url}/admin`);
    await page.getByRole("status").filter({ hasText: "version" }).waitFor();
  };
  const dataOf = async (): Promise<DashboardData> =>
    (await (await fetch(`${story.url}/admin/data`)).json()) as DashboardData;

  it("shows the state, what was used and by whom, and nothing that was said", async () => {
    story = await startPageStory({ BUDGET_DAY_USD: "5" });
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    await dashboardOf(page);
    const text = await page.locator("main").innerText();
    expect(text).toMatch(/store\s+ready/);
    expect(text).toMatch(/gateway\s+ready/);
    expect(text).toMatch(/web\s+ready/);
    expect(text).toContain("sandbox/chat");
    expect(text).toContain("web:local");
    expect(text).toMatch(/of 5\.00 USD/);
    expect(text).not.toContain("Juniper");
    expect(await page.locator(".uplot canvas").count()).toBe(4);
    const data = await dataOf();
    expect(data).toMatchObject({ status: "ready", budgets: { dayUsd: 5 }, usage: { total: { calls: 1 } } });
    expect(data.platforms).toMatchObject([{ id: "web", lastEventAt: expect.any(Number), reconnects: 0 }]);
    expect(data.minutes.reduce((sum, { turns }) => sum + turns, 0)).toBe(1);
    expect(data.store.bytes).toBeGreaterThan(0);
    expect(JSON.stringify(data)).not.toContain("Juniper");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("follows what happens while it is open: a gateway that fails, with its request id", async () => {
    const gateway = await startScriptedGateway(({ path }) =>
      path === "/v1/models"
        ? { headers: { "content-type": "application/json" }, body: '{"object":"list","data":[{"id":"m"}]}' }
        : {
            status: 400,
            headers: { "x-request-id": "req-77" },
            body: '{"error":{"message":"no such thing"}}',
          },
    );
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
    const { page } = await story.open();
    const { page: admin } = await story.open();
    await dashboardOf(admin);
    expect(await admin.locator("#problems").innerText()).toContain("None");
    await say(page, "hello");
    await admin.getByText("req-77").first().waitFor();
    expect((await dataOf()).gateway.errors).toMatchObject([
      { requestId: "req-77", code: expect.stringMatching(/^gateway-/) },
    ]);
    await gateway.close();
  });

  it("says so when Parley does not respond, and goes on when it is back", async () => {
    story = await startPageStory();
    const { page } = await story.open();
    await dashboardOf(page);
    const stopped = page.getByRole("status");
    story.parley().process.kill("SIGKILL");
    await stopped.filter({ hasText: "does not respond" }).waitFor();
    await story.restart();
    await stopped.filter({ hasText: "version" }).waitFor();
    await page.context().close();
  });

  it.each([
    { name: "on a desk", options: {} },
    { name: "on a phone, dark", options: { viewport: { width: 360, height: 740 }, colorScheme: "dark" } },
  ] as const)("passes axe-core and fits the screen $name", async ({ options }) => {
    story = await startPageStory();
    const { page, problems } = await story.open(options);
    await say(page, "hello");
    await dashboardOf(page);
    await page.evaluate(axe);
    const found = await page.evaluate<Findings>("axe.run(document)");
    expect(found.violations.map(({ id }) => id)).toEqual([]);
    const overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    expect(await page.evaluate<number>(overflow)).toBeLessThanOrEqual(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("is closed to others without ADMIN_PASSWORD, and asks for it with one", async () => {
    story = await startPageStory();
    const forwarded = { "x-forwarded-for": "192.0.2.7" };
    const closed = await fetch(`${story.url}/admin`, { headers: forwarded });
    expect([closed.status, await closed.text()]).toEqual([403, expect.stringContaining("ADMIN_PASSWORD")]);
    await story.close();
    story = await startPageStory({ ADMIN_PASSWORD: "correct horse battery" });
    const asked = await fetch(`${story.url}/admin/data`, { headers: forwarded });
    expect([asked.status, asked.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringMatching(/^Basic /),
    ]);
    const authorization = `Basic ${Buffer.from("ops:correct horse battery").toString("base64")}`;
    const admitted = await fetch(`${story.url}/admin/data`, { headers: { ...forwarded, authorization } });
    expect(admitted.status).toBe(200);
    for (const path of ["/admin/other", "/admin/page/tsconfig.json", "/admin/dashboard-data.ts"])
      expect((await fetch(`${story.url}${path}`)).status).toBe(404);
    expect((await fetch(`${story.url}/admin/data`, { method: "POST" })).status).toBe(405);
  });
});
