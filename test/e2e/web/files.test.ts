import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { unzipSync } from "fflate";
import { describe, expect, it } from "vitest";
import { makeCompound, makeDocx, makeDocxBomb, makePdf, makeXlsx } from "../../support/documents.ts";
import { makeLongWav } from "../../support/recordings.ts";
import { json } from "../../simulators/gateway/corpus-row.ts";
import { has } from "../../support/requirements.ts";
import { answerAfter, attach, field, fixturePath, say, send } from "./page-story.ts";
import { usePage, useScriptedPage, whole } from "./use-page.ts";

const toFiles = (files: Readonly<Record<string, Uint8Array>>) =>
  Object.entries(files).map(([name, bytes]) => ({
    name,
    mimeType: "application/octet-stream",
    buffer: Buffer.from(bytes),
  }));

describe.runIf(has("chromium"))("files on the page", () => {
  const story = usePage();

  it("are pictures from picker, clipboard and drag and drop, stored with the question", async () => {
    const { page, problems } = await story.open();
    await attach(page, "picture.png");
    expect(await say(page, "What is in this picture?")).toMatch(/PNG/);
    await page.locator(".from-user img").first().waitFor();
    await give(page, "paste", "picture.jpg", "image/jpeg");
    expect(await say(page, "And in this one?")).toMatch(/JPEG/);
    await give(page, "drop", "picture.webp", "image/webp");
    expect(await say(page, "And here?")).toMatch(/WebP/i);

    await page.reload();
    await answerAfter(page, 2);
    const sources = await page
      .locator(".from-user img")
      .evaluateAll((images) => images.map((image) => (image as unknown as { src: string }).src));
    expect(sources).toHaveLength(3);
    for (const source of sources) expect(source).toMatch(/\/api\/conversations\/\w+\/blobs\/[0-9a-f]{64}/);
    expect(problems).toEqual([]);
  });

  it("are documents whose text is shown with the question, also after a reload", async () => {
    const { page, problems } = await story.open();
    const files = {
      "offer.pdf": makePdf([["Total: 1,200 EUR"]]),
      "plan.docx": makeDocx([{ heading: "Plan" }, "We ship on Thursday."]),
      "sales.xlsx": makeXlsx({
        Sales: [
          ["Month", "EUR"],
          ["May", 12],
        ],
      }),
    };
    await page.getByTestId("picker").setInputFiles(toFiles(files));
    for (const name of Object.keys(files)) await page.getByText(name).waitFor();
    await say(page, "What does it cost?");
    await page.reload();
    await answerAfter(page, 0);
    const read = page.locator(".from-user details.file-text pre");
    expect(await read.allTextContents()).toEqual([
      "[page 1]\nTotal: 1,200 EUR",
      "# Plan\n\nWe ship on Thursday.",
      "## Sheet: Sales\n\n```csv\nMonth,EUR\nMay,12\n```",
    ]);
    expect(problems).toEqual([]);
  });

  it("are answered with what was left out, and why a file was not read", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(
      toFiles({
        "long.pdf": makePdf(Array.from({ length: 210 }, () => ["x"])),
        "secret.pdf": makePdf([["x"]], { isEncrypted: true }),
        "bomb.docx": makeDocxBomb(100_000_000),
        "cut.docx": makeDocx(["x".repeat(3000)]).subarray(0, 700),
      }),
    );
    await page.getByText("cut.docx").waitFor();
    const said = await say(page, "Read these");
    expect(said).toContain("Only the first 200 of 210 pages of long.pdf were read.");
    expect(said).toContain("secret.pdf (it is protected by a password");
    expect(said).toContain("bomb.docx (it unpacks to more than Parley reads");
    expect(said).toContain("cut.docx (it is damaged or incomplete");
  });

  it("that cannot be read are named before sending; a picture is read whatever it is called", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(fixturePath("empty.bin"));
    await page.getByRole("alert").getByText("empty.bin is empty.").waitFor();
    const zip = {
      "archive.zip": Buffer.from("504b0304140000000800", "hex"),
      "old.docx": makeCompound("Workbook"),
    };
    await page.getByTestId("picker").setInputFiles(toFiles(zip));
    await page
      .getByTestId("picker")
      .setInputFiles([fixturePath("video.mp4"), fixturePath("jpeg-named.heic")]);
    await page.getByText("jpeg-named.heic").waitFor();
    const unreadable = ["archive.zip", "old.docx", "video.mp4"];
    for (const name of unreadable) {
      const chip = page.locator(".chip", { hasText: name });
      await chip.getByText("Parley cannot read this kind of file").waitFor();
    }
    await field(page).fill("What is this?");
    await field(page).press("Enter");
    await page.getByRole("alert").getByText("Remove archive.zip").waitFor();
    expect(await page.locator(".message").count()).toBe(0);
    for (const name of unreadable) await page.getByRole("button", { name: `Remove ${name}` }).click();
    await field(page).press("Enter");
    expect(await answerAfter(page, 0)).toMatch(/JPEG/);
  });

  it("can be looked at before they are sent: documents by what is read of them, a picture as it is", async () => {
    const { page, problems } = await story.open();
    const pdf = Buffer.from(makePdf([["Minutes of the meeting"], ["Second page"]]));
    const text = "<b>not markup</b>\n".repeat(2000);
    await page.getByTestId("picker").setInputFiles([
      { name: "minutes.pdf", mimeType: "application/pdf", buffer: pdf },
      { name: "long.txt", mimeType: "text/plain", buffer: Buffer.from(text) },
      { name: "broken.pdf", mimeType: "application/pdf", buffer: pdf.subarray(0, 200) },
    ]);
    await attach(page, "picture.png");
    const open = async (name: string) => {
      await page.getByTitle(`Preview of ${name}`).click();
      return page.getByRole("dialog", { name: `Preview of ${name}` });
    };
    const minutes = await open("minutes.pdf");
    await minutes.getByText("Minutes of the meeting").waitFor();
    await minutes.getByText("Second page").waitFor();
    await minutes.getByText("This is what Parley reads of it.").waitFor();
    await page.keyboard.press("Escape");
    await minutes.waitFor({ state: "detached" });

    const long = await open("long.txt");
    await long.getByText("The beginning of what Parley reads of it.").waitFor();
    await expect.poll(() => long.locator("pre").innerText()).toBe(text.slice(0, 20_000));
    await long.getByRole("button", { name: "Close" }).click();

    const broken = await open("broken.pdf");
    await broken.getByRole("alert").getByText("broken.pdf: not read").waitFor();
    await page.keyboard.press("Escape");

    const picture = await open("picture.png");
    await picture.getByRole("img").waitFor();
    expect(problems.filter((problem) => !problem.includes("422"))).toEqual([]);
  });

  it("take a paste that is too long, of which nothing is lost", async () => {
    const { page, problems } = await story.open();
    const long = "word ".repeat(12_100).trim();
    await field(page).evaluate((element, text) => {
      element.focus();
      // A paste does the same: what the field refuses is not there.
      element.ownerDocument.execCommand("insertText", false, text);
    }, long);
    await expect.poll(() => field(page).inputValue()).toBe(long);
    await page.getByText("60,499 characters, 499 too many").waitFor();
    await field(page).press("Enter");
    expect(await page.locator(".message").count()).toBe(0);
    await page.getByRole("button", { name: "Attach as a file" }).click();
    await page.getByText("pasted-text.txt").waitFor();
    await expect.poll(() => field(page).inputValue()).toBe("");
    await say(page, "How long is it?");
    await page.locator(".file-text summary", { hasText: "pasted-text.txt" }).waitFor();
    expect(problems).toEqual([]);
  });

  it("of a chat are taken along, as one archive and as Markdown, and removed with /forget", async () => {
    const { page, problems } = await story.open();
    const button = page.getByRole("button", { name: "Copy or download this chat" });
    await page.getByRole("heading", { name: "What shall we talk about?" }).waitFor();
    expect(await button.count()).toBe(0);
    await attach(page, "picture.png");
    await say(page, "What is this?");

    await button.click();
    const [archive] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download everything (zip)" }).click(),
    ]);
    expect(archive.suggestedFilename()).toBe("What is this.zip");
    const files = unzipSync(await readFile(await archive.path()));
    const names = Object.keys(files);
    expect(names).toEqual(["conversation.md", "conversation.json", expect.stringMatching(/^image-.*\.png$/)]);
    const markdown = Buffer.from(files["conversation.md"] ?? []).toString();
    expect(markdown).toContain("# What is this?");
    expect(markdown).toContain(`](${names[2]})`);
    const json = JSON.parse(Buffer.from(files["conversation.json"] ?? []).toString()) as {
      messages: unknown;
    };
    expect(json.messages).toHaveLength(2);
    expect(files[names[2] ?? ""]).toEqual(new Uint8Array(await readFile(fixturePath("picture.png"))));

    // By keyboard, the first entry has the focus, and Escape gives it back.
    await button.press("Enter");
    const copy = page.getByRole("button", { name: "Copy as Markdown" });
    await expect.poll(() => copy.evaluate((element) => element.matches(":focus"))).toBe(true);
    await page.keyboard.press("Escape");
    await copy.waitFor({ state: "hidden" });
    await button.press("Enter");
    await copy.press("Enter");
    await page.getByRole("status").getByText("Copied").waitFor();
    await field(page).focus();
    await page.keyboard.press("Control+v");
    await expect.poll(() => field(page).inputValue()).toBe(markdown);
    await field(page).fill("");

    await say(page, "/export");
    const chips = page.locator(".from-parley").nth(1).locator("a.file-chip[download]");
    await expect
      .poll(() => chips.allInnerTexts())
      .toEqual(["conversation.md", "conversation.json", "conversation.zip"]);
    const [packed] = await Promise.all([page.waitForEvent("download"), chips.nth(2).click()]);
    expect(Object.keys(unzipSync(await readFile(await packed.path())))).toHaveLength(3);
    expect(problems).toEqual([]);

    const addresses = await page
      .locator("a.file-chip[download], .picture img")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href") ?? one.getAttribute("src") ?? ""));
    expect(addresses).toHaveLength(4);
    const statusOf = (address: string) =>
      page.evaluate(async (url) => (await fetch(url, { cache: "no-store" })).status, address);
    for (const address of addresses) expect(await statusOf(address)).toBe(200);
    const before = new URL(page.url()).pathname;
    await send(page, "/forget where:here confirm:yes");
    await page.locator(".messages").getByText("Removed in this conversation").waitFor();
    // What was removed is not shown any more.
    await expect.poll(() => page.locator(".messages").getByText("What is this?").allInnerTexts()).toEqual([]);
    for (const address of addresses) expect(await statusOf(address), address).toBe(404);
    await expect.poll(() => page.getByRole("navigation").locator(`a[href="${before}"]`).count()).toBe(0);
  });
});

describe.runIf(has("chromium"))("recordings on the page", () => {
  const story = usePage();
  const words = (page: Page) => page.locator(".from-user .voice figcaption");

  it("are shown with player and transcript, which can be put right and is answered anew", async () => {
    const { page, problems } = await story.open();
    await attach(page, "voice.ogg");
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await expect.poll(() => words(page).innerText()).toMatch(/Recording: (Ogg|WebM)/);
    await expect.poll(() => durationOf(page)).toBeGreaterThan(0.5);
    await page.getByRole("button", { name: "Fix transcript" }).click();
    const better = page.getByLabel("voice.ogg", { exact: true });
    await better.waitFor();
    await expect.poll(() => better.inputValue()).toMatch(/I measure sound/);
    await better.fill("Remember the word larch.");
    await page.getByRole("button", { name: "Get a new answer" }).click();
    await expect.poll(() => words(page).innerText()).toBe("Remember the word larch.");
    expect(await answerAfter(page, 0)).toContain("larch");
    expect(await page.locator(".from-parley").count()).toBe(1);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => words(page).innerText()).toBe("Remember the word larch.");
    await expect.poll(() => durationOf(page)).toBeGreaterThan(0.5);
    expect(problems).toEqual([]);
  });

  it("are transcribed by /transcribe, once: the answer is the transcript, also when it was put right", async () => {
    const { page, problems } = await story.open();
    await attach(page, "voice.m4a");
    expect(await say(page, "/transcribe language:en")).toMatch(/Recording: MP4/);
    await page.reload();
    expect(await answerAfter(page, 0)).toMatch(/Recording: MP4/);
    expect(await page.getByText(/Recording: MP4/).count()).toBe(1);
    expect(await page.locator(".from-user audio").count()).toBe(1);
    const answer = page.locator(".from-parley").first();
    await answer.getByRole("button", { name: "Fix transcript" }).click();
    const better = page.getByLabel("voice.m4a", { exact: true });
    await better.waitFor();
    await page.getByText("It takes the place of the transcript.").waitFor();
    await better.fill("Remember the word larch.");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await expect.poll(() => answer.innerText()).toContain("Remember the word larch.");
    const shown = page.locator(".messages").getByText("Remember the word larch.");
    expect(await shown.count()).toBe(1);
    await page.reload();
    expect(await answerAfter(page, 0)).toContain("Remember the word larch.");
    expect(await page.locator(".from-parley").count()).toBe(1);
    expect(await shown.count()).toBe(1);
    expect(await page.locator("main").innerText()).not.toContain("Recording: MP4");
    expect(problems).toEqual([]);
  });

  it("are made with the microphone, or cancelled", async () => {
    const { page, problems } = await story.open();
    await page.getByRole("button", { name: "Record a voice note" }).click();
    const recorder = page.getByRole("group", { name: "Voice recorder" });
    await recorder.getByText("0:00").waitFor();
    await recorder.getByRole("button", { name: "Cancel" }).click();
    await recorder.waitFor({ state: "detached" });
    expect(await page.getByRole("list", { name: "Files to send" }).count()).toBe(0);

    // This takes a real second, because the microphone of the browser records it.
    await page.getByRole("button", { name: "Record a voice note" }).click();
    await recorder.getByText("0:01").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText(/voice-.*\.webm/).waitFor();
    await field(page).press("Enter");
    await answerAfter(page, 0);
    await expect
      .poll(() => page.locator(".from-user figcaption").innerText())
      .toMatch(/Recording: (Ogg|WebM)/);
    // The browser has written no length into it.
    await expect.poll(() => durationOf(page)).toBeGreaterThan(0.8);
    expect(await durationOf(page)).toBeLessThan(30);
    await page.reload();
    await answerAfter(page, 0);
    await expect.poll(() => durationOf(page)).toBeGreaterThan(0.8);
    const position = () =>
      page.locator("audio").evaluate((audio) => (audio as unknown as { currentTime: number }).currentTime);
    await expect.poll(position).toBe(0);
    expect(problems).toEqual([]);
  });
});

describe.runIf(has("chromium"))("long recordings on the page", () => {
  const { story, script } = useScriptedPage({ settings: { TRANSCRIPTION_MODEL: "m" } });

  it("are transcribed in parts, with progress", async () => {
    const heard = (text: string) => json(JSON.stringify({ text }));
    const { page } = await story.open();
    const sendRecording = async () => {
      await page.getByTestId("picker").setInputFiles(toFiles({ "meeting.wav": makeLongWav(1210) }));
      await page.getByText("meeting.wav").last().waitFor();
      await field(page).press("Enter");
    };
    script.answer({ ...json("{"), after: "hang" });
    await sendRecording();
    await page.getByText("Transcribing part 1 of 3").waitFor();
    await page.getByRole("button", { name: "Stop the answer" }).click();
    await answerAfter(page, 0);
    script.answer(heard("The beginning."), heard("The middle."), heard("The end."), whole("Noted."));
    await sendRecording();
    expect(await answerAfter(page, 1)).toContain("Noted.");
    const words = await page.locator(".from-user .voice figcaption").last().innerText();
    expect(words).toMatch(/The beginning\.\s+The middle\.\s+The end\./);
  });
});

/** Pastes a file into the text field, or drops it onto the page. */
async function give(page: Page, how: "paste" | "drop", name: string, type: string): Promise<void> {
  const base64 = (await readFile(fixturePath(name))).toString("base64");
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
      for (const kind of ["dragenter", "dragover", "drop"])
        main.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`,
  );
  await page.getByRole("list", { name: "Files to send" }).getByText(name).waitFor();
}

async function durationOf(page: Page): Promise<number> {
  const duration = Number(await page.evaluate(`document.querySelector("audio")?.duration ?? 0`));
  return Number.isFinite(duration) ? duration : 0;
}
