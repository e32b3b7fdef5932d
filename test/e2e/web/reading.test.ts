import { describe, expect, it } from "vitest";
import { uri } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, say, send } from "./page-story.ts";
import { useScriptedPage, whole } from "./use-page.ts";

describe.skipIf(!has("chromium"))("reading on the page", () => {
  let answer = "";
  const { story, script } = useScriptedPage({ usual: () => whole(answer) });

  it("shows Arabic and Hebrew from right to left, beside English", async () => {
    answer = "مرحبا بكم في بارلي.\n\nHello.";
    const { page } = await story.open();
    await say(page, "שלום");
    await expect.poll(() => page.locator(".bubble:dir(rtl)").innerText()).toBe("שלום");
    const blocks = page.locator(".markdown .block");
    const rightToLeft = () => blocks.evaluateAll((all) => all.map((block) => block.matches(":dir(rtl)")));
    // The renderer of Markdown is loaded after the first paint.
    await expect.poll(rightToLeft).toEqual([true, false]);
  });

  it("shows footnotes below the answer, each a click away", async () => {
    answer =
      "Water boils at 100 °C.[^sea] Not everywhere.[^2]\n\n[^sea]: At sea level.\n[^2]: See [here](https://example.com).";
    const { page, problems } = await story.open();
    await say(page, "First");
    await say(page, "And again");
    const second = page.locator(".from-parley").nth(1);
    await expect
      .poll(() => second.locator(".footnotes li").allInnerTexts())
      .toEqual(["At sea level.", "See here."]);
    await second.getByRole("link", { name: "1", exact: true }).click();
    const note = second.locator(".footnotes li").first();
    await expect.poll(() => note.and(page.locator(":focus")).count()).toBe(1);
    expect(new URL(page.url()).hash).toBe("");
    expect(problems).toEqual([]);
  });

  it("shows formulas as mathematics, and leaves what is none as it was written", async () => {
    answer =
      "Euler: \\(e^{i\\pi} + 1 = 0\\), for $5.\n\n\\[\n\\int_0^1 x\\,dx = \\frac{1}{2}\n\\]\n\nWrong: \\(\\frac{\\)";
    const { page, problems } = await story.open();
    await say(page, "Maths?");
    const markdown = page.locator(".markdown");
    await markdown.locator("math mfrac").waitFor();
    expect(await markdown.locator("math").count()).toBe(2);
    await expect.poll(() => markdown.locator("math msup").first().isVisible()).toBe(true);
    await expect.poll(() => markdown.innerText()).toContain("for $5.");
    await expect.poll(() => markdown.locator("code").innerText()).toBe("\\frac{");
    expect(problems).toEqual([]);
  });

  it("colours code in a language that it knows, in both themes, and copies it as it is", async () => {
    const code = 'const a = "<b>"; // one';
    answer = `\`\`\`js\n${code}\n\`\`\`\n\n\`\`\`nonsense\nlet it be\n\`\`\``;
    const { page, problems } = await story.open();
    await say(page, "Code?");
    await page.locator(".markdown .hljs-keyword").waitFor();
    const colourOf = (selector: string): Promise<string> =>
      page.evaluate(`getComputedStyle(document.querySelector(".markdown ${selector}")).color`);
    const colours: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      expect(await colourOf(".hljs-keyword")).not.toBe(await colourOf("code"));
      colours.push(await colourOf(".hljs-keyword"));
    }
    expect(colours[0]).not.toBe(colours[1]);
    expect((await page.locator(".markdown pre").first().innerText()).trim()).toBe(code);
    expect(await page.locator(".language-nonsense span").count()).toBe(0);
    expect(problems).toEqual([]);
  });

  it("is read aloud without markup", async () => {
    answer = "# Steps\n\n1. **Open** the [door](https://example.org)\n2. Go `in`";
    const { page } = await story.open();
    await say(page, "How?");
    const spoken = page.locator(".sr-only[aria-live=polite]");
    await expect.poll(() => spoken.innerText()).toMatch(/^Parley: Steps\s+Open the door\s+Go in$/);
  });

  it("is read aloud without markup also where the renderer is loaded late", async () => {
    answer = "Go **in**.";
    const { page } = await story.open();
    const { promise: isAnswered, resolve } = Promise.withResolvers<void>();
    await page.route("**/page/markdown.js", async (route) => {
      await isAnswered;
      await route.continue();
    });
    await page.reload();
    await send(page, "How?");
    await page.locator(".from-parley.is-finished .as-written").waitFor();
    resolve();
    const spoken = page.locator(".sr-only[aria-live=polite]");
    await expect.poll(() => spoken.innerText()).toBe("Parley: Go in.");
  });

  it("lays pictures out in two columns, on a phone too", async () => {
    answer = "Done.";
    const { page } = await story.open();
    const [, bytes = ""] = uri.split(",");
    const files = ["a", "b", "c", "d"].map((name) => ({
      name: `${name}.png`,
      mimeType: "image/png",
      buffer: Buffer.from(bytes, "base64"),
    }));
    await page.getByTestId("picker").setInputFiles(files);
    await say(page, "What are these?");
    for (const width of [1200, 380]) {
      await page.setViewportSize({ width, height: 800 });
      const boxes = await page
        .locator(".picture")
        .evaluateAll((all) => all.map((one) => one.getBoundingClientRect()).map(({ x, y }) => [x, y]));
      expect(new Set(boxes.map(([x]) => x)).size, `${width} px`).toBe(2);
      expect(new Set(boxes.map(([, y]) => y)).size, `${width} px`).toBe(2);
    }
  });

  it("leaves room for the messages at 400 %", async () => {
    answer = "Word after word. ".repeat(40);
    const { page } = await story.open({ viewport: { width: 320, height: 200 } });
    await say(page, "Talk");
    const shown = page.locator(".markdown");
    await shown.scrollIntoViewIfNeeded();
    const { height } = (await page.locator(".thread-frame").boundingBox())!;
    expect(height).toBeGreaterThan(130);
    await field(page).scrollIntoViewIfNeeded();
    await expect.poll(() => field(page).isVisible()).toBe(true);
  });

  it("says that an address names no chat, and not of new ones", async () => {
    answer = "Here.";
    const { page } = await story.open();
    const words = page.getByText("There is no chat at this address");
    expect(await words.count()).toBe(0);
    await page.goto(new URL(`/c/${"0".repeat(24)}`, story.url).href);
    await words.waitFor();
    await say(page, "So be it");
    await page.reload();
    await answerAfter(page, 0);
    expect(await words.count()).toBe(0);
  });

  it("scrolls along with a long answer only while the person is at its end", async () => {
    answer = "Word after word. ".repeat(500);
    const { page } = await story.open();
    await say(page, "Write at length");
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
  });

  it("does not show the gateway's address to everybody", async () => {
    const { page } = await story.open();
    expect(await page.locator("body").innerText()).not.toContain(new URL(script.gateway.baseUrl).host);
  });
});
