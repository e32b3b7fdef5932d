import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { say } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

/** A folder for screenshots to look at. By default none are taken. */
const shots = process.env["PAGE_SHOTS"];

const diagram = (text: string) => whole(`Here it is:\n\n\`\`\`mermaid\n${text}\n\`\`\`\n\nThat is all.`);
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const drawing = (page: Page) => page.frameLocator(".diagram iframe").locator("svg");

const windows = [
  { name: "phone-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { name: "wide-light", viewport: { width: 1280, height: 800 }, colorScheme: "light" },
] as const;

describe.skipIf(!has("chromium"))("a diagram in an answer", () => {
  const { story, script } = useScriptedPage();

  it.each(windows)("is drawn when it is asked for: $name", async ({ name, ...options }) => {
    script.answer(
      diagram("flowchart LR\n  question[A question] --> answer[An answer]\n  answer --> question"),
    );
    const { page, problems } = await story.open(options);
    const loaded: string[] = [];
    page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
    await say(page, "Draw me a loop");
    await button(page, "Draw").waitFor();
    expect(loaded.filter((path) => /mermaid|diagram/.test(path))).toEqual([]);
    await button(page, "Draw").click();
    await drawing(page).getByText("An answer").waitFor();
    const frame = page.locator(".diagram iframe");
    await expect.poll(async () => (await frame.boundingBox())?.height ?? 0).toBeGreaterThan(30);
    const [outer, inner] = [await page.locator(".code-frame").boundingBox(), await frame.boundingBox()];
    expect(inner?.width).toBeLessThanOrEqual(outer?.width ?? 0);
    expect(await frame.getAttribute("sandbox")).toBe("allow-scripts");
    expect(await violations(page)).toEqual([]);
    if (shots !== undefined) await page.screenshot({ path: `${shots}/diagram-${name}.png` });
    await button(page, "Hide the drawing").click();
    await frame.waitFor({ state: "detached" });
    await page.locator("pre", { hasText: "flowchart LR" }).waitFor();
    expect(problems).toEqual([]);
  });

  it("that is none says so, and its text stays", async () => {
    script.answer(diagram("this is (no diagram"));
    const { page } = await story.open();
    await say(page, "Draw me nothing");
    await button(page, "Draw").click();
    await page.getByText("This text is not a diagram that can be drawn.").waitFor();
    expect(await page.locator(".diagram iframe").count()).toBe(0);
    await page.locator("pre", { hasText: "this is (no diagram" }).waitFor();
  });

  it("that is hostile reaches neither the page nor another host", async () => {
    script.answer(
      diagram(
        [
          '%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%',
          "flowchart TD",
          "  one[\"<img src=x onerror='parent.pwned = 1; top.pwned = 1'><script>top.pwned = 2</script>words\"] --> two[Two]",
          '  click one "javascript:top.pwned = 3" "tip"',
          '  click two href "https://evil.example/leave" _top',
          "  click two call alert()",
        ].join("\n"),
      ),
    );
    const { page } = await story.open();
    const hosts = new Set<string>();
    page.on("request", (request) => hosts.add(new URL(request.url()).host));
    await say(page, "Attack me");
    const address = page.url();
    await button(page, "Draw").click();
    const two = drawing(page).getByText("Two");
    await two.waitFor();
    await two.click();
    await drawing(page).getByText("words").click();
    const inFrame = page.frames().find((frame) => frame.url().endsWith("/page/diagram"));
    expect(await inFrame?.evaluate("origin")).toBe("null");
    const reach = (code: string) =>
      inFrame?.evaluate(`(async () => { try { ${code}; return "reached"; } catch { return "refused"; } })()`);
    expect(await reach("top.document.title")).toBe("refused");
    expect(await reach("await fetch('/api/state')")).toBe("refused");
    expect(await reach("localStorage.length")).toBe("refused");
    expect(
      await inFrame?.evaluate(
        "[...document.querySelectorAll('[href], [onclick], [onerror], script:not([src])')].map((one) => one.outerHTML)",
      ),
    ).toEqual([]);
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    expect(page.url()).toBe(address);
    expect([...hosts]).toEqual([new URL(address).host]);
  });
});
