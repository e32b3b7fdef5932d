import { parentPort, workerData } from "node:worker_threads";
import type { getDocumentProxy } from "unpdf";
import {
  DocumentError,
  type DocumentFormat,
  documentLimits,
  type DocumentMessage,
  type DocumentText,
  type Omission,
} from "./read-document.ts";

/**
 * Converts a document to Markdown. It must run in a worker, since hostile files make the libraries loop and
 * allocate.
 * @throws DocumentError; any other error of a library means that the file is damaged
 */
async function convertDocument(
  bytes: Uint8Array<ArrayBuffer>,
  format: DocumentFormat,
): Promise<DocumentText> {
  const { text, omissions } = await convert(bytes, format);
  if (text.trim() === "") throw new DocumentError("no-text");
  if (text.length <= documentLimits.chars) return { text, omissions };
  return {
    text: text.slice(0, documentLimits.chars),
    omissions: [...omissions, { kind: "characters", read: documentLimits.chars }],
  };
}

/** Libraries are loaded with a document of their kind. */
async function convert(bytes: Uint8Array<ArrayBuffer>, format: DocumentFormat): Promise<DocumentText> {
  if (format === "pdf") return await pdfText(bytes);
  const office = await import("./office-text.ts");
  switch (format) {
    case "docx":
      return office.docxText(bytes);
    case "xlsx":
      return office.xlsxText(bytes);
    case "pptx":
      return office.pptxText(bytes);
    case "odt":
    case "ods":
    case "odp":
      return office.openDocumentText(bytes);
  }
}

/** How many page numbers without text are named. */
const maxNamedPages = 10;

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type Page = Awaited<ReturnType<Pdf["getPage"]>>;

/** Returns a PDF's text by page. @throws DocumentError `encrypted`, `no-text`, or an error of pdf.js */
async function pdfText(bytes: Uint8Array<ArrayBuffer>): Promise<DocumentText> {
  const hasPictures = /\/Subtype\s*\/Image\b/.test(Buffer.from(bytes.buffer).toString("latin1"));
  const pdf = await open(bytes);
  const pages: string[] = [];
  const blank: number[] = [];
  let chars = 0;
  for (let number = 1; number <= Math.min(pdf.numPages, documentLimits.pages); number += 1) {
    if (chars > documentLimits.chars) break;
    const page = await pdf.getPage(number);
    const text = await textOf(page);
    page.cleanup();
    if (text === "") blank.push(number);
    pages.push(text === "" ? "" : `[page ${number}]\n${text}`);
    chars += text.length;
  }
  if (blank.length === pages.length) throw new DocumentError("no-text");
  const omissions: Omission[] = [
    ...(pages.length < pdf.numPages
      ? [{ kind: "pages", read: pages.length, count: pdf.numPages } as const]
      : []),
    ...(blank.length > 0
      ? [{ kind: "blank-pages", count: blank.length, pages: blank.slice(0, maxNamedPages) } as const]
      : []),
    ...(hasPictures ? [{ kind: "pictures" } as const] : []),
  ];
  return { text: pages.filter((text) => text !== "").join("\n\n"), omissions };
}

async function open(bytes: Uint8Array<ArrayBuffer>): Promise<Pdf> {
  const unpdf = await import("unpdf");
  try {
    return await unpdf.getDocumentProxy(bytes, { disableFontFace: true, verbosity: 0 });
  } catch (error) {
    if (error instanceof Error && error.name === "PasswordException") {
      throw new DocumentError("encrypted", error);
    }
    throw error;
  }
}

/** Returns lines as on the page. A wide gap within a line is a tab, so that table columns stay apart. */
async function textOf(page: Page): Promise<string> {
  const { items } = await page.getTextContent();
  let text = "";
  let lastY: number | undefined;
  for (const item of items) {
    if (!("str" in item)) continue;
    const y = Number(item.transform[5]);
    const isParagraph = lastY !== undefined && text.endsWith("\n") && lastY - y > item.height * 1.7;
    if (isParagraph && item.height > 0) text += "\n";
    const isGap = item.str.trim() === "" && item.width > 10;
    text += isGap ? "\t" : item.str;
    if (item.hasEOL) text += "\n";
    if (item.height > 0) lastY = y;
  }
  return text.replace(/(?<![^\S\n\t])[^\S\n\t]+$/gm, "").trim();
}

// This is the entry of the worker thread that `read-document.ts` starts.
const { bytes, format } = workerData as { bytes: Uint8Array<ArrayBuffer>; format: DocumentFormat };
let message: DocumentMessage;
try {
  message = await convertDocument(bytes, format);
} catch (error) {
  // Errors of the libraries mean that they do not understand the file.
  message = { problem: error instanceof DocumentError ? error.problem : "damaged" };
}
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(message);
