import { describe, expect, it } from "vitest";
import { type AttachmentReader, readAttachments } from "../../../../src/assistant/turn/attachments.ts";
import { makeCompound, makePdf, makeXlsx } from "../../../support/documents.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

const files = new Map<string, Uint8Array>();
const reader: AttachmentReader = {
  clock: createManualClock(),
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
  it("are stored as their text, whatever their name says, with what was left out of them", async () => {
    const pages = [["Total: 12 EUR"], [], ...Array.from({ length: 199 }, () => ["x"])];
    const { parts, notices } = await read("offer.txt", makePdf(pages, { hasPicture: true }));
    const start = expect.stringMatching(/^\[page 1\]\nTotal: 12 EUR\n/) as string;
    expect(parts).toMatchObject([{ kind: "file", name: "offer.txt", text: start }]);
    expect(notices).toEqual([
      "Only the first 200 of 201 pages of offer.txt were read.",
      "Page 2 of offer.txt has no text (a scan or a picture) and was not read.",
      "The pictures in offer.txt were not read.",
    ]);
  });

  it.each([
    ["a.pdf", makePdf([["x"]], { isEncrypted: true }), "it is protected by a password; send it without one"],
    ["c.docx", makeCompound("Workbook"), "it is in Excel’s old format (.xls); save it as .xlsx"],
    ["d.pdf", makePdf([[]]), "it contains no text"],
    ["e.xlsx", makeXlsx({ A: [["x"]] }).subarray(0, -30), "damaged or incomplete"],
  ])("that cannot be read say why: %s", async (name, bytes, why) => {
    const { parts } = await read(name, bytes);
    expect(parts).toMatchObject([{ kind: "unread", reason: expect.stringContaining(why) as string }]);
  });

  it("quotes the sources of web pages and drawings", async () => {
    const page = new Uint8Array(Buffer.from("<!doctype html><p>Hello</p>"));
    expect((await read("index.html", page)).parts).toMatchObject([
      { kind: "file", text: "<!doctype html><p>Hello</p>" },
    ]);
  });
});
