import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, attach, field, say, send, chooseInAccount } from "./page-story.ts";
import { hanging, usePage, useScriptedPage, whole } from "./use-page.ts";

const typed = (page: Page) => field(page).inputValue();
const files = (page: Page) => page.getByRole("list", { name: "Files to send" });
const startNew = (page: Page) => page.getByRole("button", { name: "New chat" }).click();
const open = (page: Page, title: string) =>
  page.getByRole("navigation").getByRole("link", { name: title }).click();
const alert = (page: Page, text: string) => page.getByRole("alert").getByText(text);

describe.skipIf(!has("chromium"))("what was typed in two windows of one browser", () => {
  const { story, script } = useScriptedPage();

  it("is each window's own, and the one that sends leaves the other's text", async () => {
    script.answer(whole("Hello."), whole("Heard."));
    const { page } = await story.open();
    await send(page, "Windows");
    await answerAfter(page, 0);
    await field(page).fill("typed in the first");
    const second = await page.context().newPage();
    await second.goto(page.url());
    await answerAfter(second, 0);
    expect(await typed(second)).toBe("");
    await send(second, "sent by the second");
    await answerAfter(second, 1);
    await page.reload();
    await expect.poll(() => typed(page)).toBe("typed in the first");
    expect(await typed(second)).toBe("");
  });

  it("comes back in the next window after its own was closed, once", async () => {
    const { page } = await story.open();
    await field(page).fill("typed before the end");
    const [, first, second] = [page, await page.context().newPage(), await page.context().newPage()];
    await first.goto(story.url);
    await field(first).fill("typed in the other");
    await first.close({ runBeforeUnload: true });
    await expect.poll(() => page.context().pages().length).toBe(2);
    await second.goto(story.url);
    await expect.poll(() => typed(second)).toBe("typed in the other");
    await page.reload();
    await expect.poll(() => typed(page)).toBe("typed before the end");
    expect(await typed(second)).toBe("typed in the other");
  });
});

describe.skipIf(!has("chromium"))("what was attached to a chat and not sent", () => {
  const { story, script } = useScriptedPage();

  it("waits in its chat while others are looked at, and is sent with it", async () => {
    script.answer(whole("Hello."), whole("A picture."));
    const { page } = await story.open();
    await send(page, "Waiting room");
    await answerAfter(page, 0);
    await attach(page, "picture.png");
    await startNew(page);
    await expect.poll(() => files(page).count()).toBe(0);
    await open(page, "Waiting room");
    await files(page).getByText("picture.png").waitFor();
    await send(page, "See");
    await answerAfter(page, 1);
    expect(script.asked.at(-1)).toContain("data:image/");
    expect(await files(page).count()).toBe(0);
  });

  it("is asked for before the page is left", async () => {
    const { page } = await story.open();
    await attach(page, "picture.png");
    const asked = page.waitForEvent("dialog");
    const left = page.reload();
    const dialog = await asked;
    expect(dialog.type()).toBe("beforeunload");
    await dialog.accept();
    await left;
  });

  it("goes with the text of a new chat that is left during its upload, and not into the next", async () => {
    let letGo = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    script.answer(whole("Seen."));
    const { page } = await story.open();
    await page.route(/\/api\/uploads\?/, async (route) => {
      await released;
      await route.fallback();
    });
    await page.getByTestId("picker").setInputFiles({
      name: "late.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("Late words."),
    });
    await send(page, "Look at it");
    await expect.poll(() => new URL(page.url()).pathname).toMatch(/^\/c\//);
    await startNew(page);
    await expect.poll(() => typed(page)).toBe("");
    expect(await files(page).count()).toBe(0);
    letGo();
    await open(page, "Look at it");
    await answerAfter(page, 0);
    expect(script.asked.at(-1)).toContain("Late words.");
    expect(await typed(page)).toBe("");
    await startNew(page);
    await expect.poll(() => typed(page)).toBe("");
  });

  it("is uploaded again with the message where the upload had failed", async () => {
    script.answer(whole("Seen."));
    const { page, problems } = await story.open();
    await page.route(/\/api\/uploads\?/, (route) => route.abort(), { times: 1 });
    await page.getByTestId("picker").setInputFiles({
      name: "again.txt",
      mimeType: "text/plain",
      buffer: Buffer.from("Words again."),
    });
    await files(page).getByText("cannot be reached").waitFor();
    await send(page, "Look again");
    await answerAfter(page, 0);
    expect(script.asked.at(-1)).toContain("Words again.");
    problems.splice(0);
  });

  it("comes back to its chat when its question is taken back there and the chat was left", async () => {
    script.answer(hanging("It goes on"));
    const { page } = await story.open();
    await send(page, "Busy");
    await page.locator(".from-parley").getByText("It goes on").first().waitFor();
    await attach(page, "notes.txt");
    await send(page, "Second");
    const waits = page.locator(".from-user", { hasText: "Second" });
    await waits.getByText("Waits for the answer above").waitFor();
    let letGo = () => {};
    const released = new Promise<void>((resolve) => (letGo = resolve));
    await page.route(/\/take-back$/, async (route) => {
      await released;
      await route.fallback();
    });
    const asked = page.waitForRequest(/\/take-back$/);
    const taken = page.waitForResponse(/\/take-back$/);
    await waits.getByRole("button", { name: "Take back" }).click();
    await asked;
    await startNew(page);
    await field(page).fill("another thought");
    letGo();
    await (await taken).finished();
    await open(page, "Busy");
    await files(page).getByText("notes.txt").waitFor();
    await expect.poll(() => typed(page)).toBe("Second");
    await startNew(page);
    await expect.poll(() => typed(page)).toBe("another thought");
    expect(await files(page).count()).toBe(0);
    await field(page).fill("");
  });
});

describe.skipIf(!has("chromium"))("a recording", () => {
  const story = usePage();
  const record = async (page: Page) => {
    await page.getByRole("button", { name: "Record a voice note" }).click();
    await page.getByRole("group", { name: "Voice recorder" }).getByText("0:01").waitFor();
  };

  it("is attached where its microphone is unplugged", async () => {
    const { page } = await story.open();
    await page.evaluate(`(() => {
      const devices = navigator.mediaDevices;
      const ask = devices.getUserMedia.bind(devices);
      devices.getUserMedia = async (wanted) => (window.heard = await ask(wanted));
    })()`);
    await record(page);
    await page.evaluate("window.heard.getTracks().forEach((track) => track.stop())");
    await files(page).getByText("voice-").waitFor();
    await alert(page, "The microphone is gone.").waitFor();
    await page.getByRole("button", { name: "Remove voice-" }).click();
  });

  it("waits in its chat that was left while it was made", async () => {
    const { page } = await story.open();
    await say(page, "Heard here");
    await record(page);
    await startNew(page);
    await open(page, "Heard here");
    await files(page).getByText("voice-").waitFor();
    await page.getByRole("button", { name: "Remove voice-" }).click();
  });
});

describe.skipIf(!has("chromium"))("the keys of a word that is composed", () => {
  const { story, script } = useScriptedPage();

  // Safari's Enter that confirms a word comes after the end of the composition, with this code alone.
  const confirming = { key: "Enter", keyCode: 229, bubbles: true, cancelable: true };

  it("do not send it", async () => {
    const { page } = await story.open();
    await field(page).fill("日本語");
    await field(page).dispatchEvent("keydown", confirming);
    await field(page).fill("日本語です");
    script.answer(whole("はい。"));
    await field(page).dispatchEvent("keydown", { ...confirming, keyCode: 13 });
    await answerAfter(page, 0);
    expect(await page.locator(".bubble").allInnerTexts()).toEqual(["日本語です"]);
  });

  it("choose no model", async () => {
    const { page } = await story.open();
    await page.getByRole("button", { name: /^Model: / }).click();
    const list = page.getByRole("dialog", { name: "Model" });
    await list.getByRole("combobox").dispatchEvent("keydown", confirming);
    expect(await list.isVisible()).toBe(true);
  });
});

describe.skipIf(!has("chromium"))("a connection that was lost", () => {
  const { story, script } = useScriptedPage();

  it("is not called lost when it is back, and what was not sent is offered again", async () => {
    script.answer(whole("Hello."), whole("Heard."));
    const { page } = await story.open();
    await send(page, "Cut");
    await answerAfter(page, 0);
    await story.stop();
    await send(page, "Into the void");
    await page.getByText("Parley cannot be reached").waitFor();
    await page.getByText("Your message has not been sent.").waitFor();
    await story.start();
    await expect.poll(() => page.getByText("cannot be reached").count()).toBe(0);
    await page.getByText("Your message has not been sent.").waitFor();
    expect(await typed(page)).toBe("Into the void");
    await page.getByRole("button", { name: "Send again" }).click();
    await answerAfter(page, 1);
    expect(await page.getByText("Your message has not been sent.").count()).toBe(0);
    expect(await typed(page)).toBe("");
  });

  it("leaves word of the chat whose message was not sent", async () => {
    script.answer(whole("Hello."));
    const { page } = await story.open();
    await send(page, "Left alone");
    await answerAfter(page, 0);
    let fail = () => {};
    const failed = new Promise<void>((resolve) => (fail = resolve));
    await page.route(/\/messages$/, async (route) => {
      await failed;
      await route.abort();
    });
    const asked = page.waitForRequest(/\/messages$/);
    await send(page, "Into the void");
    await asked;
    await startNew(page);
    await story.stop();
    fail();
    await alert(page, "Left alone: Parley cannot be reached.").waitFor();
    await story.start();
    await alert(page, "Left alone: Your message has not been sent.").waitFor();
  });
});

describe.skipIf(!has("chromium"))("a duplicated window", () => {
  const { story } = useScriptedPage();

  it("has a draft of its own", async () => {
    const { page } = await story.open();
    await field(page).fill("in the first");
    // A browser copies what the session has stored into a duplicated window, and into one that it opens.
    const [copy] = await Promise.all([
      page.waitForEvent("popup"),
      page.evaluate("void window.open(location.href)"),
    ]);
    await field(copy).waitFor();
    expect(await typed(copy)).toBe("");
    await field(copy).fill("in the second");
    for (const one of [page, copy]) await one.reload();
    await expect.poll(() => typed(page)).toBe("in the first");
    await expect.poll(() => typed(copy)).toBe("in the second");
  });
});

describe.skipIf(!has("chromium"))("a login", () => {
  const { story } = useScriptedPage({ settings: { PAGE_PASSWORD: "correct horse" } });

  it("outlasts a restart, with what was typed", async () => {
    const { page } = await story.open();
    await page.getByLabel("Password of this page").fill("correct horse");
    await page.keyboard.press("Enter");
    await field(page).fill("in the middle of a");
    await story.stop();
    await story.start();
    await page.reload();
    await expect.poll(() => typed(page)).toBe("in the middle of a");
    await chooseInAccount(page, "Log out");
    await page.getByLabel("Password of this page").waitFor();
    await page.reload();
    await page.getByLabel("Password of this page").waitFor();
  });
});

describe.skipIf(!has("chromium"))("a command that a person stops", () => {
  const { story, script } = useScriptedPage({ settings: { IMAGE_MODEL: "m" } });

  it("says so once, and not as an error", async () => {
    script.answer({ body: "", after: "hang" });
    const { page } = await story.open();
    await send(page, "/imagine a boat");
    await expect.poll(() => script.left()).toBe(0);
    await page.getByRole("button", { name: "Stop the answer" }).click();
    await answerAfter(page, 0);
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await expect.poll(() => page.locator(".from-parley").getByText("Stopped.").count()).toBe(1);
      await page.locator(".from-parley.is-finished").waitFor();
    }
  });
});

describe.skipIf(!has("chromium"))("a chat of private calls alone", () => {
  const { story, script } = useScriptedPage();

  it("says after a reload that they were private, and goes on", async () => {
    script.answer(whole("Only for you."), whole("For the record."));
    const { page } = await story.open();
    await send(page, "/ask A secret private:yes");
    await answerAfter(page, 0);
    await page.reload();
    await page.getByText("All that was said here was private").waitFor();
    expect(await page.getByText("There is no chat at this address").count()).toBe(0);
    await send(page, "Now aloud");
    await page.locator(".from-parley").getByText("For the record.").waitFor();
    await page.reload();
    await page.locator(".from-parley").getByText("For the record.").waitFor();
    expect(await page.getByText("All that was said here was private").count()).toBe(0);
  });
});

describe.skipIf(!has("chromium"))("an answer that a person stops with Esc", () => {
  const prices = { m: { inputPerMillionUsd: 1000, outputPerMillionUsd: 1000 } };
  const { story, script } = useScriptedPage({ settings: { MODEL_PRICES: JSON.stringify(prices) } });

  it("keeps its words, with Continue, Branch and about how much it used", async () => {
    script.answer(hanging("One two"));
    const { page } = await story.open();
    await send(page, "Count with me");
    await page.locator(".from-parley").getByText("One two").first().waitFor();
    await page.keyboard.press("Escape");
    await answerAfter(page, 0);
    const answer = page.locator(".from-parley").first();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      for (const name of ["Continue", "Branch"]) await answer.getByRole("button", { name }).waitFor();
      await answer.getByText(/about [\d,]+ tokens/).waitFor();
    }
    script.answer(whole(" three."));
    await answer.getByRole("button", { name: "Continue" }).click();
    await answer.getByText("One two three.").waitFor();
    // Nothing runs now, so Esc does nothing.
    await page.keyboard.press("Escape");
    await expect.poll(() => answer.locator(".markdown").innerText()).toBe("One two three.");
  });

  it("before its first word can be made anew and says about what it cost, but is nothing to go on from", async () => {
    script.answer({ ...hanging(""), body: ": wait\n\n" });
    const { page } = await story.open();
    await send(page, "Think first");
    await expect.poll(() => script.left()).toBe(0);
    await page.getByRole("button", { name: "Stop the answer" }).waitFor();
    await page.keyboard.press("Escape");
    await answerAfter(page, 0);
    const answer = page.locator(".from-parley").first();
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload();
      await answer.getByText(/about [\d,]+ tokens · \$\d/).waitFor();
      const names = await answer
        .getByRole("button")
        .evaluateAll((all) => all.map((one) => one.getAttribute("aria-label")));
      expect(names).toEqual(["Regenerate", "Other model", "Details"]);
    }
    script.answer(whole("Now."));
    await answer.getByRole("button", { name: "Regenerate" }).click();
    await answer.getByText("Now.").waitFor();
  });
});

describe.skipIf(!has("chromium"))("below an answer that is not the last", () => {
  const { story, script } = useScriptedPage();

  it("nothing is offered that is always refused there", async () => {
    script.answer(whole("The first."), whole("The second."));
    const { page } = await story.open();
    const offered = (index: number, name: string) =>
      page.locator(".from-parley").nth(index).getByRole("button", { name }).count();
    await send(page, "Old and new");
    await answerAfter(page, 0);
    await expect.poll(() => offered(0, "Regenerate")).toBe(1);
    await send(page, "Newer");
    await answerAfter(page, 1);
    await expect.poll(() => offered(1, "Other model")).toBe(1);
    for (const name of ["Regenerate", "Other model"]) expect(await offered(0, name)).toBe(0);
    for (const name of ["Details", "Branch", "Good answer"]) expect(await offered(0, name)).toBe(1);
  });

  it("the buttons are shown under the pointer or with the focus alone", async () => {
    script.answer(whole("The first."), whole("The second."));
    const { page } = await story.open();
    for (const index of [0, 1]) {
      await send(page, `Question ${index}`);
      await answerAfter(page, index);
    }
    const opacity = (index: number) =>
      page.evaluate(`getComputedStyle(document.querySelectorAll(".foot")[${index}]).opacity`);
    await page.mouse.move(5, 5);
    expect([await opacity(0), await opacity(1)]).toEqual(["0", "1"]);
    await page.locator(".from-parley").first().hover();
    expect(await opacity(0)).toBe("1");
    await page.mouse.move(5, 5);
    expect(await opacity(0)).toBe("0");
    const details = page.locator(".from-parley").first().getByRole("button", { name: "Details" });
    await details.focus();
    expect(await opacity(0)).toBe("1");
    await page.keyboard.press("Enter");
    await page.locator(".told:not([hidden])").waitFor();
    await field(page).focus();
    expect(await opacity(0)).toBe("1");
  });
});
