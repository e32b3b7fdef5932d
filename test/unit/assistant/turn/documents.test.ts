import { describe, expect, it } from "vitest";
import { readAttachments, type AttachmentReader } from "../../../../src/assistant/turn/attachments.ts";
import { makeCompound, makeDocx, makePdf, makeXlsx } from "../../../support/documents.ts";

const files = new Map<string, Uint8Array>();
const reader: AttachmentReader = {
  download: ({ name }) => Promise.resolve(files.get(name)!),
  transcribe: () => Promise.reject(new Error("nothing to transcribe")),
  conversations: { putBlob: () => Promise.reject(new Error("nothing to keep")) },
  conversationId: "test:1",
  admitBytes: () => Promise.resolve(() => undefined),
  status: () => undefined,
};

async function read(name: string, bytes: Uint8Array) {
  files.set(name, bytes);
  return await readAttachments([{ id: "1", name, source: null }], reader, AbortSignal.timeout(60_000));
}

describe("documents in messages", () => {
  it("are stored as their text, whatever their name says", async () => {
    const pdf = makePdf([["Total: 12 EUR"]]);
    expect(await read("offer.txt", pdf)).toMatchObject({
      parts: [{ kind: "file", name: "offer.txt", text: "[page 1]\nTotal: 12 EUR" }],
      notices: [],
    });
  });

  it("say what was left out of them", async () => {
    const pdf = makePdf([["One"], []], { hasPicture: true });
    expect((await read("scan.pdf", pdf)).notices).toEqual([
      "Page 2 of scan.pdf has no text (a scan or a picture) and was not read.",
      "The pictures in scan.pdf were not read.",
    ]);
    const long = makePdf(Array.from({ length: 201 }, () => ["x"]));
    expect((await read("long.pdf", long)).notices).toEqual([
      "Only the first 200 of 201 pages of long.pdf were read.",
    ]);
  });

  it("that cannot be read say why", async () => {
    const reasonOf = async (name: string, bytes: Uint8Array) => {
      const [part] = (await read(name, bytes)).parts;
      return part?.kind === "unread" ? part.reason : part?.kind;
    };
    expect(await reasonOf("a.pdf", makePdf([["x"]], { isEncrypted: true }))).toBe(
      "it is protected by a password; send it without one",
    );
    expect(await reasonOf("b.docx", makeCompound("EncryptedPackage"))).toBe(
      "it is protected by a password; send it without one",
    );
    expect(await reasonOf("c.docx", makeCompound("Workbook"))).toBe(
      "it is in Excel’s old format (.xls); save it as .xlsx",
    );
    expect(await reasonOf("d.pdf", makePdf([[]]))).toContain("it contains no text");
    const xlsx = makeXlsx({ A: [["x"]] });
    expect(await reasonOf("e.xlsx", xlsx.subarray(0, xlsx.length - 30))).toContain("damaged or incomplete");
  });

  it("reads a workbook that is called a Word document", async () => {
    const answer = await read("report.docx", makeXlsx({ Sales: [["Month", "EUR"]] }));
    expect(answer.parts).toMatchObject([{ kind: "file", text: "## Sheet: Sales\n\n```csv\nMonth,EUR\n```" }]);
  });

  it("quotes the sources of web pages and drawings", async () => {
    const page = new Uint8Array(Buffer.from("<!doctype html><p>Hello</p>"));
    expect((await read("index.html", page)).parts).toMatchObject([
      { kind: "file", text: "<!doctype html><p>Hello</p>" },
    ]);
  });

  it("reads a Word document", async () => {
    expect((await read("plan.docx", makeDocx([{ heading: "Plan" }, "Thursday."]))).parts).toMatchObject([
      { kind: "file", text: "# Plan\n\nThursday." },
    ]);
  });
});
