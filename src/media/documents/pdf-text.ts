import { getDocumentProxy } from "unpdf";
import { DocumentError, documentLimits, type DocumentText, type Omission } from "./document.ts";

/** How many page numbers without text are named. */
const maxNamedPages = 10;

type Pdf = Awaited<ReturnType<typeof getDocumentProxy>>;
type Page = Awaited<ReturnType<Pdf["getPage"]>>;

/** Returns a PDF's text by page. @throws DocumentError `encrypted`, `no-text`, or an error of pdf.js */
export async function pdfText(bytes: Uint8Array<ArrayBuffer>): Promise<DocumentText> {
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
  try {
    return await getDocumentProxy(bytes, { disableFontFace: true, verbosity: 0 });
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
