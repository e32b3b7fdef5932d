import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { answerAfter, field, fixturePath, say, startPageStory, type PageStory } from "./page-story.ts";

describe.skipIf(!has("chromium"))("the local page with default settings", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(async () => {
    await story?.close();
  });

  it("keeps a conversation across a reload and a crash", async () => {
    const { page, problems } = await story.open();
    await page.getByText("Sandbox: no model is connected.").waitFor();
    expect(await say(page, "My parrot is called Juniper.")).toContain("sandbox");
    expect(await say(page, "What did I say first?")).toContain("My parrot is called Juniper.");
    const bubbles = ["My parrot is called Juniper.", "What did I say first?"];
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(bubbles);
    const current = page.getByRole("navigation").getByRole("link", { name: "My parrot is called Juniper." });
    await expect.poll(() => current.getAttribute("aria-current")).toBe("page");
    const shown = await page.locator(".messages").innerText();

    await page.reload();
    await answerAfter(page, 1);
    await expect.poll(() => page.locator(".messages").innerText()).toBe(shown);
    expect(problems).toEqual([]);

    await story.restart();
    await page.reload();
    await answerAfter(page, 1);
    await expect.poll(() => page.locator(".messages").innerText()).toBe(shown);
    expect(await say(page, "List everything I said.")).toContain("What did I say first?");
    await page.context().close();
  });

  it("sends pictures from picker, clipboard and drag and drop to the model", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("picture.png"));
    await page.getByRole("list", { name: "Files to send" }).getByText("picture.png").waitFor();
    expect(await say(page, "What is in this picture?")).toMatch(/PNG/);
    await page.locator(".from-user img").first().waitFor();

    const jpeg = (await readFile(fixturePath("picture.jpg"))).toString("base64");
    await give(page, "paste", jpeg, "pasted.jpg", "image/jpeg");
    expect(await say(page, "And in this one?")).toMatch(/JPEG/);

    const webp = (await readFile(fixturePath("picture.webp"))).toString("base64");
    await give(page, "drop", webp, "dropped.webp", "image/webp");
    expect(await say(page, "And here?")).toMatch(/WebP/i);

    await page.reload();
    await answerAfter(page, 2);
    const sources = await page
      .locator(".from-user img")
      .evaluateAll((images) => images.map((image) => (image as unknown as { src: string }).src));
    expect(sources).toHaveLength(3);
    for (const source of sources) expect(source).toMatch(/\/api\/conversations\/\w+\/blobs\/[0-9a-f]{64}/);
    await page.locator(".from-user img").first().click();
    await page.getByRole("dialog", { name: "Picture" }).getByRole("link", { name: "Download" }).waitFor();
    await page.keyboard.press("Escape");
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("shows a voice note with player and transcript, also after a reload", async () => {
    const { page, problems } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("voice.ogg"));
    await page.getByText("voice.ogg").waitFor();
    await field(page).press("Enter");
    await answerAfter(page, 0);
    const note = page.locator(".from-user .voice");
    await expect.poll(() => note.locator("figcaption").innerText()).toMatch(/Opus/i);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => durationOf(page)).toBeGreaterThan(0.5);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("transcribes a file attached to /transcribe", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("voice.m4a"));
    await page.getByText("voice.m4a").waitFor();
    expect(await say(page, "/transcribe language:en")).toMatch(/AAC/);
    await page.reload();
    expect(await answerAfter(page, 0)).toMatch(/AAC/);
    // Once: the answer is the transcript.
    expect(await page.getByText(/MPEG-4\/AAC/).count()).toBe(1);
    expect(await page.locator(".from-user audio").count()).toBe(1);
    await page.context().close();
  });

  it("says before sending which files cannot be read, and reads a picture whatever it is called", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("empty.bin"));
    await page.getByRole("alert").getByText("empty.bin is empty.").waitFor();
    await page
      .getByTestId("picker")
      .setInputFiles([fixturePath("video.mp4"), fixturePath("jpeg-named.heic")]);
    await page.getByText("jpeg-named.heic").waitFor();
    await page
      .locator(".chip", { hasText: "video.mp4" })
      .getByText("Parley cannot read this kind of file")
      .waitFor();
    await page.getByRole("button", { name: "Remove video.mp4" }).click();
    expect(await say(page, "What is this?")).toMatch(/JPEG/);
    await page.context().close();
  });

  it("records a voice note, or cancels the recording", async () => {
    const { page, problems } = await story.open();
    await page.getByRole("button", { name: "Record a voice note" }).click();
    const recorder = page.getByRole("group", { name: "Voice recorder" });
    await recorder.getByText("0:01").waitFor();
    await recorder.getByRole("button", { name: "Cancel" }).click();
    await recorder.waitFor({ state: "detached" });
    expect(await page.getByRole("list", { name: "Files to send" }).count()).toBe(0);

    await page.getByRole("button", { name: "Record a voice note" }).click();
    await recorder.getByText("0:02").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText(/voice-.*\.webm/).waitFor();
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await expect.poll(() => page.locator(".from-user figcaption").innerText()).toMatch(/Opus/i);
    // The browser has written no length into it.
    await expect.poll(() => durationOf(page)).toBeCloseTo(2, 0);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => durationOf(page)).toBeCloseTo(2, 0);
    const position = () =>
      page.locator("audio").evaluate((audio) => (audio as unknown as { currentTime: number }).currentTime);
    await expect.poll(position).toBe(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("draws a picture for a command completed by keyboard, and keeps it", async () => {
    const { page, problems } = await story.open();
    await field(page).focus();
    await page.keyboard.type("/im");
    await page.getByRole("option", { name: /\/imagine/ }).waitFor();
    await page.keyboard.press("Enter");
    await expect.poll(() => field(page).inputValue()).toBe("/imagine ");
    await page.keyboard.type("a green hill si");
    await page.getByRole("option", { name: /size:/ }).waitFor();
    await page.keyboard.press("Tab");
    await expect.poll(() => field(page).inputValue()).toBe("/imagine a green hill size:");
    await page.keyboard.type("320x200 ");
    await page.keyboard.press("Enter");
    await answerAfter(page, 0);
    const picture = page.locator(".from-parley img");
    await picture.waitFor();
    expect(await sizeOf(page)).toEqual([320, 200]);
    await expect.poll(() => picture.getAttribute("alt")).toContain("green hill");
    await page.reload();
    await answerAfter(page, 0);
    await page.locator(".from-parley img").waitFor();
    await expect.poll(() => sizeOf(page)).toEqual([320, 200]);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("completes models by keyboard, closes the list, and keeps the text of a refused command", async () => {
    const { page } = await story.open();
    await field(page).focus();
    await page.keyboard.type("/ask hello model:sand");
    await page.getByRole("option", { name: "sandbox/chat" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("listbox").waitFor({ state: "detached" });
    await page.keyboard.type("b");
    await page.getByRole("option", { name: "sandbox/chat" }).waitFor();
    await page.keyboard.press("Tab");
    await expect.poll(() => field(page).inputValue()).toMatch(/^\/ask hello model:sandbox\/\w+ $/);

    // Only those that can do what the command does.
    await field(page).fill("");
    await page.keyboard.type("/imagine a cat model:");
    await page.getByRole("option", { name: "sandbox/image" }).waitFor();
    // What was offered before goes with the response.
    await expect.poll(() => page.getByRole("option").allInnerTexts()).toEqual(["sandbox/image"]);

    await field(page).fill("/imagin a cat");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("There is no command /imagin").waitFor();
    expect(await field(page).inputValue()).toBe("/imagin a cat");
    await field(page).fill("/imagine a cat count:9");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").getByText("a whole number from 1 to 4").waitFor();
    expect(await field(page).inputValue()).toBe("/imagine a cat count:9");
    expect(await page.locator(".message").count()).toBe(0);
    await page.context().close();
  });

  it("shows a private call and its answer, and keeps neither in the conversation", async () => {
    const { page, problems } = await story.open();
    const list = page.getByRole("navigation");
    const isNotKept = page.locator(".messages").getByText("Private: not kept in this conversation.");
    await say(page, "My tortoise is called Basil.");
    expect(await say(page, "/ask What is a secret? private:yes")).toContain("You wrote: “What is a secret?”");
    await isNotKept.waitFor();
    // It is not part of the context either, and stays visible after the next turn.
    expect(await say(page, "What did I say first?")).not.toContain("secret");
    expect(await page.locator(".message").count()).toBe(6);
    await isNotKept.waitFor();
    expect(await page.getByRole("button", { name: "Stop the answer" }).count()).toBe(0);

    await page.reload();
    await answerAfter(page, 1);
    const bubbles = ["My tortoise is called Basil.", "What did I say first?"];
    await expect.poll(() => page.locator(".bubble").allInnerTexts()).toEqual(bubbles);
    expect(await page.locator(".message").count()).toBe(4);
    expect(await isNotKept.count()).toBe(0);
    await list.getByRole("link", { name: "My tortoise is called Basil." }).waitFor();
    expect(await list.getByRole("link", { name: "What is a secret?" }).count()).toBe(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  it("opens a new conversation with /chat and navigates to it", async () => {
    const { page } = await story.open();
    await say(page, "Where do I start?");
    const before = page.url();
    await field(page).fill("/chat Tell me of otters.");
    await field(page).press("Enter");
    await page.waitForURL((url) => url.href !== before);
    await answerAfter(page, 0);
    await page.locator(".bubble", { hasText: "Tell me of otters." }).waitFor();
    expect(await page.locator(".message").count()).toBe(2);
    await page.getByRole("navigation").getByRole("link", { name: "Tell me of otters." }).waitFor();
    await page.goBack();
    await page.locator(".bubble", { hasText: "Where do I start?" }).waitFor();
    await page.context().close();
  });
});

type Page = Awaited<ReturnType<PageStory["open"]>>["page"];

/** Pastes a file into the text field, or drops it onto the page. */
async function give(
  page: Page,
  how: "paste" | "drop",
  base64: string,
  name: string,
  type: string,
): Promise<void> {
  await page.evaluate(
    `(() => {
      const bytes = Uint8Array.from(atob(${JSON.stringify(base64)}), (c) => c.charCodeAt(0));
      const data = new DataTransfer();
      data.items.add(new File([bytes], ${JSON.stringify(name)}, { type: ${JSON.stringify(type)} }));
      const field = document.querySelector("textarea");
      if (${JSON.stringify(how)} === "paste") {
        field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
        return;
      }
      const main = document.querySelector("main");
      main.dispatchEvent(new DragEvent("dragenter", { dataTransfer: data, bubbles: true, cancelable: true }));
      main.dispatchEvent(new DragEvent("dragover", { dataTransfer: data, bubbles: true, cancelable: true }));
      main.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`,
  );
  await page.getByRole("list", { name: "Files to send" }).getByText(name).waitFor();
}

async function sizeOf(page: Page): Promise<unknown> {
  return await page.evaluate(
    `(() => { const image = document.querySelector(".from-parley img"); return [image?.naturalWidth, image?.naturalHeight]; })()`,
  );
}

async function durationOf(page: Page): Promise<number> {
  return Number(await page.evaluate(`document.querySelector("audio")?.duration ?? 0`));
}
