import { expect, it } from "vitest";
import { makeCompound, makeDocx, makeDocxBomb, makePdf, makeXlsx } from "../support/documents.ts";
import { makeLongWav } from "../support/recordings.ts";
import type { Place } from "./surface.ts";
import { eachPlatform, tell } from "./tell.ts";

const toFiles = (files: Readonly<Record<string, Uint8Array>>) =>
  Object.entries(files).map(([name, bytes]) => ({ name, bytes }));
const wordsIn = (place: Place) =>
  place
    .shown()
    .map(({ text, smallPrint }) => `${text}\n${smallPrint}`)
    .join("\n");

tell(eachPlatform, ({ begin }) => {
  it("a PDF, a Word document and a workbook are read, and later questions have them too", async () => {
    const { model, person, direct } = await begin();
    const ada = person("Ada");
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
    const { place } = await ada.asks(direct(ada), "What does it cost?", toFiles(files));
    const words = ["Total: 1,200 EUR", "# Plan", "We ship on Thursday.", "## Sheet: Sales", "May,12"];
    for (const read of words) expect(model.said(0).at(-1)).toContain(read);
    await ada.asks(place, "And when?");
    expect(model.said(1)[0]).toContain("We ship on Thursday.");
  });

  it("a long recording is transcribed in parts, with progress, and its words come as a file with times", async () => {
    const { model, person, direct, everSent } = await begin();
    const ada = person("Ada");
    // The gateway takes longer than a status waits, so progress is shown.
    model.hears("These are the words of one part. ".repeat(30).trim(), { takesMs: 300 });
    model.answers("Noted.");
    const { place } = await ada.asks(direct(ada), "", toFiles({ "meeting.wav": makeLongWav(1210) }));
    const uploads = model.requestsTo("/v1/audio/transcriptions");
    expect(uploads).toHaveLength(3);
    expect(uploads[1]?.body.toString("latin1")).toContain("the words of one part.");
    expect(
      model
        .said(0)
        .at(-1)
        ?.match(/These are the words/g),
    ).toHaveLength(90);
    const files = () => place.shown().flatMap((shown) => shown.files);
    await expect.poll(() => files().map(({ name }) => name)).toEqual(["meeting-transcript.txt"]);
    expect(Buffer.from(files()[0]!.bytes).toString()).toMatch(
      /^\[0:00\] These[\s\S]+\n\[6:\d\d\] These[\s\S]+\n\[12:\d\d\] These/,
    );
    expect(wordsIn(place)).toContain("(The whole transcript is in `meeting-transcript.txt`.)");
    expect(everSent()).toMatch(/[Tt]ranscribing part \d of 3/);
  });
});

// Files are read in the same way wherever they come from.
tell(["Slack by socket"], ({ begin }) => {
  it("what was left out is said, and why a file was not read", async () => {
    const { person, direct } = await begin();
    const ada = person("Ada");
    const files = {
      "long.pdf": makePdf(Array.from({ length: 201 }, () => ["x"])),
      "secret.pdf": makePdf([["x"]], { isEncrypted: true }),
      "scan.pdf": makePdf([[]], { hasPicture: true }),
      "old.docx": makeCompound("Workbook"),
      "bomb.docx": makeDocxBomb(100_000_000),
      "cut.docx": makeDocx(["x".repeat(3000)]).subarray(0, 700),
    };
    const { place } = await ada.asks(direct(ada), "Read these", toFiles(files));
    for (const said of [
      "Only the first 200 of 201 pages of `long.pdf` were read.",
      "`secret.pdf` (it is protected by a password; send it without one)",
      "`scan.pdf` (it contains no text",
      "`old.docx` (it is in Excel’s old format (.xls); save it as .xlsx)",
      "`bomb.docx` (it unpacks to more than Parley reads",
      "`cut.docx` (it is damaged or incomplete",
    ])
      expect(wordsIn(place)).toContain(said);
  });
});
