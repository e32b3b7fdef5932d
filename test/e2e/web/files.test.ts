import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { has } from "../../support/requirements.ts";
import { makeCompound, makeDocx, makeDocxBomb, makePdf, makeXlsx } from "../../support/documents.ts";
import { makeLongWav } from "../../support/recordings.ts";
import { answerAfter, field, say, startPageStory, type PageStory } from "./page-story.ts";

const toFiles = (files: Readonly<Record<string, Uint8Array>>) =>
  Object.entries(files).map(([name, bytes]) => ({
    name,
    mimeType: "application/octet-stream",
    buffer: Buffer.from(bytes),
  }));

describe.runIf(has("chromium"))("files on the page", () => {
  let story: PageStory;
  beforeAll(async () => {
    story = await startPageStory();
  });
  afterAll(() => story.close());

  it("shows the text of a PDF, a Word document and a workbook with the question, also after a reload", async () => {
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
    await page.context().close();
  });

  it("says what was left out, and why a file was not read", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(
      toFiles({
        "long.pdf": makePdf(Array.from({ length: 2000 }, () => ["x"])),
        "secret.pdf": makePdf([["x"]], { isEncrypted: true }),
        "bomb.docx": makeDocxBomb(100_000_000),
        "cut.docx": makeDocx(["x".repeat(3000)]).subarray(0, 700),
      }),
    );
    await page.getByText("cut.docx").waitFor();
    const said = await say(page, "Read these");
    expect(said).toContain("Only the first 200 of 2,000 pages of long.pdf were read.");
    expect(said).toContain("secret.pdf (it is protected by a password");
    expect(said).toContain("bomb.docx (it unpacks to more than Parley reads");
    expect(said).toContain("cut.docx (it is damaged or incomplete");
    await page.context().close();
  });

  it("says before sending that an old Excel file is not read", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(toFiles({ "old.docx": makeCompound("Workbook") }));
    await page
      .locator(".chip", { hasText: "old.docx" })
      .getByText("Parley cannot read this kind of file")
      .waitFor();
    await page.context().close();
  });

  it("transcribes a long recording in parts, with progress", async () => {
    const { page } = await story.open();
    await page.getByTestId("picker").setInputFiles(toFiles({ "meeting.wav": makeLongWav(1210) }));
    await page.getByText("meeting.wav").waitFor();
    await field(page).press("Enter");
    await page.getByText(/Transcribing part \d of 3/).waitFor();
    await answerAfter(page, 0);
    const note = page.locator(".from-user .voice figcaption");
    expect((await note.innerText()).match(/I measure sound/g)).toHaveLength(3);
    await page.context().close();
  }, 90_000);
});
