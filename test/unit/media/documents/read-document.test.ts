import { describe, expect, it } from "vitest";
import { type DocumentFormat, readDocument } from "../../../../src/media/documents/read-document.ts";
import {
  makeDocx,
  makeDocxBomb,
  makeOpenDocument,
  makePdf,
  makePdfBomb,
  makePptx,
  makeXlsx,
} from "../../../support/documents.ts";
import { holdUpOf } from "../../../support/longest-turn.ts";
import { fixture } from "../../../fixtures/fixtures.ts";

const read = (bytes: Uint8Array, format: DocumentFormat) =>
  readDocument(bytes, format, "ann", AbortSignal.timeout(60_000));

/** Makes an archive's entries claim a size of one byte. */
function withFalseSizes(archive: Uint8Array): Uint8Array {
  const file = Buffer.from(archive);
  for (let at = file.indexOf("PK\x01\x02"); at !== -1; at = file.indexOf("PK\x01\x02", at + 4)) {
    if (file.toString("latin1", at + 46, at + 63) === "word/document.xml") file.writeUInt32LE(1, at + 24);
  }
  return new Uint8Array(file);
}

// Attack: A document that is a bomb: 80 MB of blanks in a docx, false sizes, a cell in the last
// column. What holds: unpacked within claims of 64 MB, in a process with bounds of time and memory.
// Attack: A 2,000-page PDF, an encrypted or cut-off document, a wrong name. What holds: a bounded
// number of pages, a reason in the reply; the event loop is free.
describe("readDocument", () => {
  it("reads a PDF page by page, lines as lines", async () => {
    const pdf = makePdf([["Offer 4711", "Total: 1,200 EUR"], ["Terms"]]);
    expect(await read(pdf, "pdf")).toEqual({
      text: "[page 1]\nOffer 4711\nTotal: 1,200 EUR\n\n[page 2]\nTerms",
      omissions: [],
    });
  });

  it("reads a Word document with headings and tables as Markdown, and says that pictures were left out", async () => {
    const docx = makeDocx(
      [
        { heading: "Plan" },
        "We ship on Thursday.",
        {
          table: [
            ["Item", "Cost"],
            ["Seats | chairs", "12"],
          ],
        },
      ],
      { picture: await fixture("picture.png") },
    );
    expect(await read(docx, "docx")).toEqual({
      text: "# Plan\n\nWe ship on Thursday.\n\n| Item | Cost |\n| --- | --- |\n| Seats \\| chairs | 12 |",
      omissions: [{ kind: "pictures", count: 1 }],
    });
  });

  it("reads a workbook sheet by sheet as CSV", async () => {
    const xlsx = makeXlsx({
      Sales: [
        ["Month", "EUR"],
        ["May, June", 12.5],
      ],
      Empty: [],
      People: [["Zoë"]],
    });
    const answer = await read(xlsx, "xlsx");
    expect(answer).toMatchObject({ omissions: [] });
    expect("text" in answer && answer.text).toBe(
      '## Sheet: Sales\n\n```csv\nMonth,EUR\n"May, June",12.5\n```\n\n## Sheet: Empty\n\n(empty)\n\n## Sheet: People\n\n```csv\nZoë\n```',
    );
  });

  it("reads slides in the order of the presentation, with notes", async () => {
    const pptx = makePptx([{ lines: ["Welcome", "Agenda"], notes: "Smile." }, { lines: ["Numbers"] }]);
    expect(await read(pptx, "pptx")).toEqual({
      text: "## Slide 1\n\nWelcome\n\nAgenda\n\nNotes:\n\nSmile.\n\n## Slide 2\n\nNumbers",
      omissions: [],
    });
  });

  it.each(["http://", "https://shop.example:99999/", "http://[::1/"])(
    "reads slides that link to %s, which is no address",
    async (link) => {
      expect(await read(makePptx([{ lines: ["Welcome"], notes: "Smile.", link }]), "pptx")).toEqual({
        text: "## Slide 1\n\nWelcome\n\nNotes:\n\nSmile.",
        omissions: [],
      });
    },
  );

  it("reads a workbook in which a number that is no date is shown as one", async () => {
    const xlsx = makeXlsx({ Calls: [["Day", { date: 45_000 }, "Phone", { date: 5_551_234_567 }, "Ann"]] });
    expect(await read(xlsx, "xlsx")).toMatchObject({
      text: "## Sheet: Calls\n\n```csv\nDay,2023-03-15,Phone,########,Ann\n```",
    });
  });

  it("reads OpenDocument text, sheets and slides", async () => {
    const text = makeOpenDocument(
      "text",
      '<office:text><text:h text:outline-level="2">Plan</text:h>\n<text:p>One<text:s/>two</text:p><text:list><text:list-item><text:p>first</text:p></text:list-item><text:list-item><text:p>second</text:p></text:list-item></text:list></office:text>',
    );
    expect(await read(text, "odt")).toMatchObject({ text: "## Plan\n\nOne two\n\n- first\n- second" });
    const cells =
      '<table:table table:name="Sales"><table:table-row><table:table-cell><text:p>Month</text:p></table:table-cell><table:table-cell><text:p>EUR</text:p></table:table-cell><table:table-cell table:number-columns-repeated="16382"/></table:table-row></table:table>';
    expect(await read(makeOpenDocument("spreadsheet", cells), "ods")).toMatchObject({
      text: "## Sales\n\n| Month | EUR |\n| --- | --- |",
    });
    const slides = "<draw:page><draw:frame><text:p>Hello</text:p></draw:frame></draw:page>";
    expect(await read(makeOpenDocument("presentation", slides), "odp")).toMatchObject({
      text: "## Slide 1\n\nHello",
    });
  });

  it("reads the first 200 pages of a PDF with 2,000, and says so, without blocking the event loop", async () => {
    const pdf = makePdf(Array.from({ length: 2000 }, (_, page) => [`This is page ${page + 1}`]));
    let answer: Awaited<ReturnType<typeof read>> | undefined;
    const problem = await holdUpOf(async () => {
      answer = await read(pdf, "pdf");
    });
    expect(answer).toMatchObject({ omissions: [{ kind: "pages", read: 200, count: 2000 }] });
    expect(answer !== undefined && "text" in answer && answer.text.endsWith("This is page 200")).toBe(true);
    expect(problem).toBeUndefined();
  });

  it("says which pages of a PDF have no text", async () => {
    expect(await read(makePdf([["One"], [], ["Three"], []], { hasPicture: true }), "pdf")).toMatchObject({
      omissions: [{ kind: "blank-pages", count: 2, pages: [2, 4] }, { kind: "pictures" }],
    });
  });

  it("says that a scan has no text", async () => {
    expect(await read(makePdf([[], []], { hasPicture: true }), "pdf")).toEqual({ problem: "no-text" });
  });

  it("says that a document is encrypted", async () => {
    expect(await read(makePdf([["Secret"]], { isEncrypted: true }), "pdf")).toEqual({ problem: "encrypted" });
    expect(await read(makeOpenDocument("text", "<text:p>?</text:p>", { isEncrypted: true }), "odt")).toEqual({
      problem: "encrypted",
    });
  });

  it("refuses a bomb by what it claims, before it unpacks anything", async () => {
    const bomb = makeDocxBomb(80_000_000);
    expect(bomb.length).toBeLessThan(400_000);
    const before = process.memoryUsage.rss();
    expect(await read(bomb, "docx")).toEqual({ problem: "too-large" });
    expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000);
  });

  it("does not unpack more than a bomb claims", async () => {
    const before = process.memoryUsage.rss();
    const answer = await read(withFalseSizes(makeDocxBomb(80_000_000)), "docx");
    expect(answer).toHaveProperty("problem");
    expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000);
  });

  // Attack: A PDF of 1 kB that unpacks to 600 MB of buffers. What holds: a process of its own,
  // whose memory is bounded.
  it("ends a PDF of 1 kB that takes hundreds of megabytes, which are not taken from this process", async () => {
    const bomb = makePdfBomb(300_000_000);
    expect(bomb.length).toBeLessThan(1500);
    const before = process.memoryUsage.rss();
    let most = 0;
    const watch = setInterval(() => (most = Math.max(most, process.memoryUsage.rss() - before)), 10);
    expect(await read(bomb, "pdf")).toEqual({ problem: "memory" });
    clearInterval(watch);
    expect(most).toBeLessThan(50_000_000);
  });

  it("ends a document that takes too much memory", async () => {
    // A cell is in the last column of many rows. A library that fills the rows up needs gigabytes.
    const row = (y: number) => `<row r="${y}"><c r="XFD${y}"><v>1</v></c></row>`;
    const rows = Array.from({ length: 100_000 }, (_, y) => row(y + 1)).join("");
    const sheet = `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>${rows}</sheetData></worksheet>`;
    const { unzipSync, zipSync, strToU8 } = await import("fflate");
    const files = unzipSync(makeXlsx({ Wide: [["x"]] }));
    const wide = zipSync({ ...files, "xl/worksheets/sheet1.xml": strToU8(sheet) });
    expect(["memory", "timeout"]).toContain(((await read(wide, "xlsx")) as { problem?: string }).problem);
  }, 40_000);

  it("says that a truncated file is damaged", async () => {
    const docx = makeDocx([{ heading: "Plan" }, "x".repeat(5000)]);
    expect(await read(docx.subarray(0, docx.length / 2), "docx")).toEqual({ problem: "damaged" });
    const xlsx = makeXlsx({ Sales: [["Month"]] });
    expect(await read(xlsx.subarray(0, xlsx.length - 40), "xlsx")).toEqual({ problem: "damaged" });
    expect(await read(Buffer.from("%PDF-1.7\nnothing"), "pdf")).toEqual({ problem: "damaged" });
  });

  it("leaves out what is past the limit of characters", async () => {
    const docx = makeDocx(Array.from({ length: 3000 }, (_, line) => `${line} ${"word ".repeat(10)}`));
    const answer = await read(docx, "docx");
    expect(answer).toMatchObject({ omissions: [{ kind: "characters", read: 100_000 }] });
  });

  it("leaves out the rows past the limit, and names the sheet", async () => {
    const rows = Array.from({ length: 20_000 }, (_, row) => [`row ${row}`, row]);
    expect(await read(makeXlsx({ Long: rows }), "xlsx")).toMatchObject({
      omissions: expect.arrayContaining([{ kind: "rows", sheets: ["Long"] }]) as unknown,
    });
  });

  it("stops when it is cancelled", async () => {
    const stop = new AbortController();
    const reading = readDocument(makePdf([["x"]]), "pdf", "ann", stop.signal);
    stop.abort(new Error("stopped"));
    await expect(reading).rejects.toThrow("stopped");
  });
});
