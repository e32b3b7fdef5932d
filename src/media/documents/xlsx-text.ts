import readXlsxFile from "read-excel-file/node";
import { DocumentError, documentLimits, type DocumentText, type Omission } from "./document.ts";
import { toFenced } from "../../support/markdown-fences.ts";
import { countPictures, repack, unpack } from "./unpack.ts";

const sheetName = /^xl\/worksheets\/[^/]+\.xml$/;
const rowEnd = "</row>";

/** Returns a workbook's sheets as CSV. @throws DocumentError `too-large`, or an error of the libraries */
export async function xlsxText(bytes: Uint8Array): Promise<DocumentText> {
  const { files, names } = unpack(bytes, (name) => /\.(?:xml|rels)$/i.test(name));
  if (files["xl/workbook.xml"] === undefined) throw new DocumentError("damaged");
  const cut = Object.entries(files).map(([name, content]) =>
    sheetName.test(name) ? ([name, cutRows(content)] as const) : ([name, content] as const),
  );
  const isCut = cut.some(([name, content]) => content !== files[name]);
  const sheets = await readXlsxFile(repack(Object.fromEntries(cut)));
  const read = sheets.slice(0, documentLimits.sheets);
  const blocks: string[] = [];
  const shortened: string[] = [];
  let chars = 0;
  for (const { sheet, data } of read) {
    const lines: string[] = [];
    for (const row of data) {
      if (chars > documentLimits.chars) break;
      const line = toCsvLine(row);
      lines.push(line);
      chars += line.length + 1;
    }
    if (lines.length < data.length) shortened.push(sheet);
    const body = lines.length === 0 ? "(empty)" : toFenced(lines.join("\n"), "csv");
    blocks.push(`## Sheet: ${sheet}\n\n${body}`);
  }
  const pictures = countPictures(names);
  const omissions: Omission[] = [
    ...(read.length < sheets.length
      ? [{ kind: "sheets", read: read.length, count: sheets.length } as const]
      : []),
    ...(shortened.length > 0 || isCut ? [{ kind: "rows", sheets: shortened } as const] : []),
    ...(pictures > 0 ? [{ kind: "pictures", count: pictures } as const] : []),
  ];
  const isEmpty = sheets.every(({ data }) => data.length === 0);
  return { text: isEmpty ? "" : blocks.join("\n\n"), omissions };
}

/** Cuts a sheet's XML at the limit, at the end of a row. */
function cutRows(content: Uint8Array): Uint8Array {
  if (content.length <= documentLimits.sheetBytes) return content;
  const head = Buffer.from(content.buffer, content.byteOffset, documentLimits.sheetBytes);
  const at = head.lastIndexOf(rowEnd);
  if (at === -1) throw new DocumentError("too-large");
  return Buffer.concat([head.subarray(0, at + rowEnd.length), Buffer.from("</sheetData></worksheet>")]);
}

/** Makes a line of CSV. @see https://www.rfc-editor.org/rfc/rfc4180 */
function toCsvLine(row: readonly unknown[]): string {
  const cells = row.map(toText);
  while (cells.at(-1) === "") cells.pop();
  return cells.map((text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)).join(",");
}

function toText(cell: unknown): string {
  if (typeof cell === "string" || typeof cell === "number" || typeof cell === "boolean") return String(cell);
  if (!(cell instanceof Date)) return "";
  const iso = cell.toISOString();
  return iso.endsWith("T00:00:00.000Z") ? iso.slice(0, 10) : iso.replace(/\.000Z$/, "Z");
}
