import type { Page, Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chunk, done, sse } from "../../simulators/gateway/corpus-row.ts";
import type { ScriptedAnswer } from "../../simulators/gateway/scripted-gateway.ts";
import { has } from "../../support/requirements.ts";
import { violations } from "./page-axe.ts";
import { answerAfter, attach, chooseInMenu, field, send, chooseInAccount } from "./page-story.ts";
import { hanging, useScriptedPage, whole } from "./use-page.ts";

const refusal: ScriptedAnswer = {
  status: 401,
  body: JSON.stringify({ error: { message: "bad key", type: "x", param: null, code: null } }),
};

const texts = (page: Page) => page.locator(".bubble, .markdown").allInnerTexts();
const stop = (page: Page) => page.getByRole("button", { name: "Stop the answer" });
const waits = (page: Page, text: string) =>
  page.locator(".from-user", { hasText: text }).getByText("Waits for the answer above");

describe.skipIf(!has("chromium"))("what was said on the page is not lost from sight", () => {
  const { story, script } = useScriptedPage();

  it("a question that waits is there after a restart, below the answer before it, and answered without a reload", async () => {
    script.answer(
      hanging("It goes on"),
      hanging("It goes on again"),
      hanging("Words for two"),
      whole("A fox."),
    );
    const { page } = await story.open();
    await send(page, "One");
    await page.getByText("It goes on").waitFor();
    await attach(page, "notes.txt");
    await send(page, "Two");
    await waits(page, "Two").waitFor();
    await send(page, "/ask Foxes model:m");
    await waits(page, "Foxes").waitFor();
    await story.stop();
    await story.start();
    await page.getByText("It goes on again").waitFor();
    const before = ["One", "It goes on again", "Two", "/ask Foxes model:m"];
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await waits(page, "Two").waitFor();
      await waits(page, "Foxes").waitFor();
      expect(await texts(page)).toEqual(before);
      await page.locator(".from-user", { hasText: "Two" }).getByText("notes.txt").waitFor();
    }
    await stop(page).click();
    await page.getByText("Words for two").waitFor();
    await page.getByText("Words for tw").waitFor();
    expect(await waits(page, "Two").count()).toBe(0);
    const during = ["One", "It goes on again", "Two", "Words for two", "/ask Foxes model:m"];
    expect(await texts(page)).toEqual(during);
    const third = page.locator(".from-user", { hasText: "Foxes" });
    await third.getByRole("button", { name: "Take back" }).click();
    await third.waitFor({ state: "detached" });
    await page.reload();
    await expect.poll(() => texts(page)).toEqual(during.slice(0, 4));
  });
});

describe.skipIf(!has("chromium"))("what could not be answered anew on the page", () => {
  const { story, script } = useScriptedPage();
  /** The page is loaded anew, or Parley is started again. Nothing of what it shows is in memory then. */
  const pass = async (page: Page, until: "now" | "reload" | "restart") => {
    if (until === "reload") await page.reload();
    if (until !== "restart") return;
    await story.stop();
    await story.start();
    await page.reload();
  };

  it("a Regenerate that fails leaves the answer, and says why there is no other one", async () => {
    script.answer(whole("The first answer."), refusal);
    const { page } = await story.open();
    await send(page, "Tell me");
    await answerAfter(page, 0);
    await page.getByRole("button", { name: "Regenerate" }).click();
    for (const since of ["now", "reload", "restart"] as const) {
      await pass(page, since);
      await page.locator(".notices").getByText("does not accept Parley's key").waitFor();
      await expect.poll(() => texts(page)).toEqual(["Tell me", "The first answer."]);
    }
    script.answer(whole("The second answer."));
    await page.getByRole("button", { name: "Regenerate" }).click();
    await expect.poll(() => texts(page)).toEqual(["Tell me", "The second answer."]);
    await expect.poll(() => page.locator(".notices").count()).toBe(0);
  });

  it("what an answer said before it broke off stays when Retry and Continue fail, and Continue adds the rest", async () => {
    script.answer({ ...sse(chunk({ content: "One two thr" })), after: "break" }, refusal);
    const { page } = await story.open();
    await send(page, "Count");
    const failure = page.locator(".failure");
    await failure.waitFor();
    await failure.getByRole("button", { name: "Retry" }).click();
    for (const since of ["now", "reload", "restart"] as const) {
      await pass(page, since);
      await failure.getByText("does not accept Parley's key").waitFor();
      await expect.poll(() => texts(page)).toEqual(["Count", "One two thr"]);
    }
    script.answer(refusal);
    await failure.getByRole("button", { name: "Continue" }).click();
    await page.locator(".notices").getByText("does not accept Parley's key").first().waitFor();
    await expect.poll(() => texts(page)).toEqual(["Count", "One two thr"]);
    script.answer(whole("ee four."));
    await page.getByRole("button", { name: "Continue" }).click();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await expect.poll(() => texts(page)).toEqual(["Count", "One two three four."]);
      for (const name of ["Continue", "Retry"])
        await expect.poll(() => page.getByRole("button", { name }).count()).toBe(0);
    }
  });
});

describe.skipIf(!has("chromium"))("what a model thought", () => {
  const { story, script } = useScriptedPage();

  it.each([
    ["in a field", [chunk({ reasoning_content: "A greeting, " }), chunk({ reasoning_content: "it seems." })]],
    ["between tags", [chunk({ content: "<think>A greeting, " }), chunk({ content: "it seems.</think>" })]],
    ["before a closing tag alone", [chunk({ content: "A greeting, it seems.</think>" })]],
  ])("%s is folded above its answer, and not part of it", async (_, thoughts) => {
    const rest = [chunk({ content: "Hello, **you**!" }, "stop"), done];
    script.answer(sse(...thoughts, ...rest), whole("Yes."));
    const { page } = await story.open();
    await send(page, "Hello");
    await answerAfter(page, 0);
    const answer = page.locator(".from-parley").first();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await expect.poll(() => answer.locator(".markdown").innerText()).toBe("Hello, you!");
      expect(await answer.getByText("A greeting, it seems.").isVisible()).toBe(false);
      await answer.getByText("Reasoning").click();
      await answer.getByText("A greeting, it seems.").waitFor();
    }
    expect(await violations(page)).toEqual([]);
    await send(page, "And again");
    await answerAfter(page, 1);
    expect(script.asked.at(-1)).toContain("Hello, **you**!");
    expect(script.asked.at(-1)).not.toContain("A greeting");
  });
});

describe.skipIf(!has("chromium"))("an answer that comes", () => {
  const { story, script } = useScriptedPage({ settings: { IMAGE_MODEL: "m" } });

  it("shows the thoughts before it while they come, and folds them when it begins", async () => {
    script.answer({
      ...sse(
        chunk({ reasoning_content: "First one thing, " }),
        ...Array.from({ length: 40 }, (_, index) => chunk({ reasoning_content: `then ${index}, ` })),
        chunk({ content: "Here **it" }),
      ),
      after: "hang",
      eventEveryMs: 25,
    });
    const { page } = await story.open();
    await send(page, "Think aloud");
    const thoughts = page.locator(".thoughts");
    await thoughts.getByText("First one thing, then 0").waitFor();
    expect(await violations(page)).toEqual([]);
    await page.locator(".from-parley strong", { hasText: "it" }).waitFor();
    await expect.poll(() => thoughts.getAttribute("open")).toBe(null);
    expect(await page.locator(".from-parley .markdown").innerText()).toBe("Here it");
    await page.keyboard.press("Escape");
    await answerAfter(page, 0);
    await thoughts.getByText("Reasoning").click();
    await thoughts.getByText("then 39,").waitFor();
  });

  it("keeps the place of a picture while it is drawn, and its chat is called by what was asked", async () => {
    script.answer({ body: "", after: "hang" });
    const { page } = await story.open();
    await send(page, "/imagine a boat size:1024x512");
    const frame = page.locator(".frames i");
    await frame.waitFor();
    const { width = 0, height = 0 } = (await frame.boundingBox()) ?? {};
    expect(height).toBeGreaterThan(300);
    expect(Math.round((10 * width) / height)).toBe(20);
    expect(await violations(page)).toEqual([]);
    await page.getByRole("button", { name: "Stop the answer" }).click();
    await answerAfter(page, 0);
    expect(await frame.count()).toBe(0);
    await page.getByRole("navigation").getByRole("link", { name: "a boat", exact: true }).waitFor();
  });
});

describe.skipIf(!has("chromium"))("what was typed on the page and not sent", () => {
  const { story, script } = useScriptedPage();

  it("survives a reload, leaving a new chat and a refusal, each chat's own, until it is sent", async () => {
    script.answer(whole("Hello."));
    const { page } = await story.open();
    const open = (name: string) => page.getByRole("navigation").getByRole("link", { name });
    const startNew = () => page.getByRole("button", { name: "New chat" }).click();
    const typed = () => field(page).inputValue();
    await send(page, "First");
    await answerAfter(page, 0);
    await field(page).fill("more of the first");
    await startNew();
    await expect.poll(typed).toBe("");
    await field(page).fill("a new thought");
    await page.reload();
    await expect.poll(typed).toBe("a new thought");
    await open("First").click();
    await expect.poll(typed).toBe("more of the first");
    await page.goBack();
    await expect.poll(typed).toBe("a new thought");
    await startNew();
    await expect.poll(typed).toBe("a new thought");

    // A text that is not taken belongs to its chat from then on.
    await send(page, "/nothing a new thought");
    await page.locator(".composer-problem").getByText("nothing").waitFor();
    await page.reload();
    await expect.poll(typed).toBe("/nothing a new thought");
    await startNew();
    await expect.poll(typed).toBe("");
    script.answer(whole("Taken."));
    await send(page, "a new thought");
    await answerAfter(page, 0);
    await startNew();
    await expect.poll(typed).toBe("");
    await page.reload();
    await expect.poll(typed).toBe("");
  });

  /** Opens a chat with one answer, whose next requests to an address wait until they are let go. */
  const openHeld = async (title: string, held: RegExp, then: (route: Route) => Promise<void>) => {
    script.answer(whole("Hello."), whole("Heard."));
    const { page } = await story.open();
    await send(page, title);
    await answerAfter(page, 0);
    let letGo = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(held, async (route) => {
      await released;
      await then(route);
    });
    return {
      page,
      letGo: () => letGo(),
      typed: () => field(page).inputValue(),
      startNew: () => page.getByRole("button", { name: "New chat" }).click(),
      goBack: () => page.getByRole("navigation").getByRole("link", { name: title }).click(),
    };
  };

  it.each([
    ["its file is uploaded", "Upload", /\/api\/uploads\?/],
    ["it is on its way", "Journey", /\/messages$/],
  ])("is the new chat's where a chat was left while %s", async (_, title, held) => {
    const { page, letGo, typed, startNew, goBack } = await openHeld(title, held, (route) => route.fallback());
    const asked = page.waitForRequest(held);
    await attach(page, "picture.png");
    await send(page, "Second");
    await asked;
    await startNew();
    await expect.poll(typed).toBe("");
    await field(page).fill("a new thought");
    const taken = page.waitForResponse(/\/messages$/);
    letGo();
    await (await taken).finished();
    await expect.poll(() => script.left()).toBe(0);
    expect(new URL(page.url()).pathname).toBe("/");
    await page.reload();
    await expect.poll(typed).toBe("a new thought");
    expect(new URL(page.url()).pathname).toBe("/");
    await goBack();
    await answerAfter(page, 1);
    expect(await typed()).toBe("");
  });

  it("is not sent twice from a chat that was left and opened again while it was on its way", async () => {
    const { page, letGo, typed, startNew, goBack } = await openHeld("Return", /\/messages$/, (route) =>
      route.fallback(),
    );
    const asked = page.waitForRequest(/\/messages$/);
    await send(page, "Second");
    await asked;
    await startNew();
    await expect.poll(typed).toBe("");
    await goBack();
    await expect.poll(typed).toBe("Second");
    letGo();
    await answerAfter(page, 1);
    await field(page).press("Enter");
    await expect.poll(typed).toBe("");
    expect(await texts(page)).toEqual(["Return", "Hello.", "Second", "Heard."]);
  });

  it("is told of, and stays in its field, where it failed after its chat was left", async () => {
    const { page, letGo, typed, startNew, goBack } = await openHeld("Failure", /\/messages$/, (route) =>
      route.abort(),
    );
    const asked = page.waitForRequest(/\/messages$/);
    await send(page, "Second");
    await asked;
    let connect = () => {};
    const connected = new Promise<void>((resolve) => (connect = resolve));
    await page.route(/\/events\?/, async (route) => {
      await connected;
      await route.fallback();
    });
    await startNew();
    await expect.poll(typed).toBe("");
    letGo();
    const told = page.getByRole("alert").getByText("Failure: Parley cannot be reached.");
    await told.waitFor();
    // The chat that was opened is connected only now, and asks for the list then.
    const listed = page.waitForResponse(/\/api\/conversations\?/);
    connect();
    await listed;
    expect(await told.isVisible()).toBe(true);
    await goBack();
    await expect.poll(typed).toBe("Second");
  });

  it("is gone with its chat", async () => {
    script.answer(whole("Hello."));
    const { page } = await story.open();
    await send(page, "Doomed");
    await answerAfter(page, 0);
    await field(page).fill("a secret");
    await chooseInMenu(page, "Doomed", "Delete");
    await page.getByRole("group", { name: "Delete Doomed" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "Doomed" }).waitFor({ state: "detached" });
    await expect
      .poll(() => page.evaluate<string>("JSON.stringify({ ...localStorage, ...sessionStorage })"))
      .not.toContain("a secret");
  });
});

describe.skipIf(!has("chromium"))("what was typed with an account", () => {
  const { story } = useScriptedPage({ settings: { PAGE_PASSWORD: "correct horse" } });
  const password = (page: Page) => page.getByLabel("Password of this page");
  const logOut = (page: Page) => chooseInAccount(page, "Log out");
  const drafts = (page: Page) => page.evaluate<string>("JSON.stringify({ ...localStorage })");
  const typeSecret = async () => {
    const { page } = await story.open();
    await password(page).fill("correct horse");
    await password(page).press("Enter");
    await field(page).fill("a secret");
    return page;
  };

  it("is gone from the browser after logging out, and stays where that failed, which the page says", async () => {
    const page = await typeSecret();
    await page.route("**/api/logout", (route) => route.abort());
    await logOut(page);
    await page.getByRole("alert").getByText("Parley cannot be reached.").waitFor();
    expect(await drafts(page)).toContain("a secret");
    await page.unroute("**/api/logout");
    await logOut(page);
    await password(page).waitFor();
    expect(await drafts(page)).not.toContain("a secret");
  });

  it("is gone from the browser after logging out of a session that had ended", async () => {
    const page = await typeSecret();
    // What the page still loads would find that its session has ended, and show the login.
    await page.getByRole("button", { name: /^Model: / }).waitFor();
    await page.context().clearCookies();
    await logOut(page);
    await password(page).waitFor();
    expect(await drafts(page)).not.toContain("a secret");
  });
});
