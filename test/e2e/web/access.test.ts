import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

const axe = await readFile(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8");

interface Findings {
  readonly passes: readonly unknown[];
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string }[];
  }[];
}

/** Violations that axe-core finds in the page's current state. */
async function violations(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const found = await page.evaluate<Findings>("axe.run(document)");
  expect(found.passes.length).toBeGreaterThan(15);
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

describe.skipIf(!has("chromium"))("the page's accessibility", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  const phone = { width: 390, height: 780 };
  it.each([
    { name: "light and wide", options: { colorScheme: "light" } as const },
    { name: "dark and wide", options: { colorScheme: "dark" } as const },
    {
      name: "light on a phone",
      options: { colorScheme: "light", viewport: phone, isMobile: true, hasTouch: true } as const,
    },
    {
      name: "dark on a phone",
      options: { colorScheme: "dark", viewport: phone, isMobile: true, hasTouch: true } as const,
    },
  ])("passes axe-core in every state, $name", async ({ options }) => {
    const { page } = await story.open({ ...options, reducedMotion: "reduce" });
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
    expect(await violations(page)).toEqual([]);
    await say(page, "Show all Markdown");
    await page.getByTestId("picker").setInputFiles([fixturePath("picture.png"), fixturePath("voice.ogg")]);
    await say(page, "And these?");
    await page.getByTestId("picker").setInputFiles([fixturePath("picture.jpg"), fixturePath("notes.txt")]);
    await page.getByText("notes.txt").waitFor();
    await field(page).fill("/imag");
    await page.getByRole("listbox").waitFor();
    expect(await violations(page)).toEqual([]);
    await field(page).fill("/nothing");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("alert").getByText("There is no command /nothing").waitFor();
    await page.getByRole("button", { name: "Record a voice note" }).click();
    await page.getByText("Recording", { exact: true }).waitFor({ state: "attached" });
    await page.getByRole("button", { name: "Done" }).and(page.locator(":enabled")).waitFor();
    expect(await violations(page)).toEqual([]);
    // No horizontal overflow.
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    await page.context().close();
  });

  it("has a drawer on a phone that can be used by keyboard and screen reader", async () => {
    const { page } = await story.open({ viewport: phone });
    await say(page, "A conversation for the drawer");
    const navigation = page.getByRole("navigation", { name: "Conversations" });
    expect(await navigation.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Conversations" }).press("Enter");
    await navigation.waitFor();
    const focused = () => page.evaluate("document.activeElement.getAttribute('aria-label')");
    await expect.poll(focused).toBe("Close the list");
    expect(await violations(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await navigation.waitFor({ state: "hidden" });
    await expect.poll(focused).toBe("Conversations");
    await page.getByRole("button", { name: "Conversations" }).press("Enter");
    await expect.poll(focused).toBe("Close the list");
    await navigation.getByRole("button", { name: "New chat" }).press("Enter");
    await navigation.waitFor({ state: "hidden" });
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
    await page.context().close();
  });

  it("can be used by keyboard alone, and announces answers", async () => {
    const { page } = await story.open();
    await expect.poll(() => page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
    await page.keyboard.type("First line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second line");
    await page.keyboard.press("Enter");
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".bubble").innerText()).toBe("First line\nsecond line");
    const announced = page.getByRole("status").filter({ hasText: "Parley:" });
    await expect.poll(() => announced.innerText()).toContain("sandbox");
    expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
    // Shift+Tab from the composer reaches the answer's button.
    for (let steps = 0; steps < 12; steps++) {
      await page.keyboard.press("Shift+Tab");
      const label = await page.evaluate("document.activeElement.getAttribute('aria-label')");
      if (label === "Copy this answer") break;
      expect(steps).toBeLessThan(11);
    }
    expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await page.context().close();
  });

  it("scrolls along with a long answer only while the person is at its end", async () => {
    const { page } = await story.open();
    await say(page, "Write 9000 characters");
    const left = () =>
      page.evaluate<number>(
        "(() => { const s = document.querySelector('.scroller'); return s.scrollHeight - s.scrollTop - s.clientHeight; })()",
      );
    await expect.poll(left).toBeLessThan(5);
    await page.locator(".scroller").hover();
    await page.mouse.wheel(0, -4000);
    await page.getByRole("button", { name: "Go to the latest message" }).waitFor();
    const top = () => page.evaluate<number>("document.querySelector('.scroller').scrollTop");
    const before = await top();
    await page.evaluate("document.querySelector('.markdown').append('more '.repeat(5000))");
    expect(await top()).toBe(before);
    await page.getByRole("button", { name: "Go to the latest message" }).click();
    await expect.poll(left).toBeLessThan(5);
    await page.context().close();
  });
});

describe.skipIf(!has("chromium"))("another site in the same browser", () => {
  let story: PageStory | undefined;
  let evil: ReturnType<typeof createServer> | undefined;
  afterEach(async () => {
    await story?.close();
    evil?.closeAllConnections();
    evil?.close();
  });

  it("cannot send messages, read conversations or embed the page", async () => {
    story = await startPageStory();
    evil = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<title>evil</title><body></body>");
    }).listen(0, "127.0.0.1");
    await once(evil, "listening");
    const { page } = await story.open();
    await say(page, "A secret of mine");
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

  it("is open to whoever reaches it, whatever the access rules for platforms say", async () => {
    story = await startPageStory({ ALLOW: "discord:guild:1234567890123456789", DENY: "slack:user:U1" });
    const { page } = await story.open();
    expect(await say(page, "Still me")).toContain("sandbox");
  });

  it("needs the password", async () => {
    story = await startPageStory({ PAGE_PASSWORD: "correct horse" });
    const { page } = await story.open();
    expect(await violations(page)).toEqual([]);
    await page.getByLabel("Password of this page").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("That is not the password.").waitFor();
    await page.getByLabel("Password of this page").fill("correct horse");
    await page.keyboard.press("Enter");
    expect(await say(page, "Let me in")).toContain("sandbox");
    const cookies = await page.context().cookies();
    expect(cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite])).toEqual([[true, "Strict"]]);
    // Sessions end with the process: people log in again and see the same conversation.
    await story.restart();
    await page.getByLabel("Password of this page").fill("correct horse");
    await page.keyboard.press("Enter");
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Password of this page").waitFor();
  });

  it("takes no password before its script is there: the browser would send it by itself", async () => {
    story = await startPageStory({ PAGE_PASSWORD: "correct horse" });
    const { page } = await story.open();
    const { promise: isWanted, resolve: want } = Promise.withResolvers<void>();
    await page.route("**/page/login.js", async (route) => {
      await isWanted;
      await route.continue();
    });
    await page.reload({ waitUntil: "commit" });
    const password = page.getByLabel("Password of this page");
    await password.waitFor();
    await expect.poll(() => password.isDisabled()).toBe(true);
    want();
    await password.fill("correct horse");
    await page.keyboard.press("Enter");
    expect(await say(page, "Let me in")).toContain("sandbox");
  });
});
