import { unzipSync, zipSync } from "fflate";
import { Parser, type ParserOptions } from "htmlparser2";
import { toFenced } from "../../core/quoting.ts";
import { DocumentError, documentLimits, type DocumentText, type Omission } from "./read-document.ts";

/** The contents of an office document's archive. */
interface Unpacked {
  /** The entries that were asked for, by name. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** The names of all entries. */
  readonly names: readonly string[];
}

/**
 * Unpacks the entries that are wanted. Memory is limited meanwhile: an entry is given the size that the
 * archive claims for it and never grows past it, and the claims together must be within the limit.
 * @throws DocumentError `too-large`, or an error of the library for a damaged archive
 */
function unpack(bytes: Uint8Array, isWanted: (name: string) => boolean): Unpacked {
  const names: string[] = [];
  let claimed = 0;
  const files = unzipSync(bytes, {
    filter({ name, originalSize }) {
      names.push(name);
      if (!isWanted(name)) return false;
      claimed += originalSize;
      if (claimed > documentLimits.unpackedBytes) throw new DocumentError("too-large");
      return true;
    },
  });
  return { files, names };
}

/** Makes an uncompressed archive of these entries, so that a library that reads it has nothing to unpack. */
function repack(files: Readonly<Record<string, Uint8Array>>): Buffer {
  return Buffer.from(zipSync({ ...files }, { level: 0 }));
}

/** Counts the pictures in an archive. */
function countPictures(names: readonly string[]): number {
  return names.filter((name) =>
    /(?:^|\/)(?:media|Pictures)\/[^/]+\.(?:png|jpe?g|gif|bmp|tiff?|emf|wmf|svg|webp)$/i.test(name),
  ).length;
}

/** Returns the text of a Word document. @throws DocumentError `too-large`, or an error of the libraries */
export async function docxText(bytes: Uint8Array): Promise<DocumentText> {
  const { files, names } = unpack(bytes, (name) => /\.(?:xml|rels)$/i.test(name));
  const pictures = countPictures(names);
  // mammoth looks for the pictures, which it must not read.
  const emptied = names.filter((name) => files[name] === undefined && !name.endsWith("/"));
  const whole = { ...files, ...Object.fromEntries(emptied.map((name) => [name, new Uint8Array()])) };
  const { default: mammoth } = await import("mammoth");
  const { value } = await mammoth.convertToHtml(
    { buffer: repack(whole) },
    { convertImage: mammoth.images.imgElement(() => Promise.resolve({ src: "" })) },
  );
  const writer = createMarkdownWriter(documentLimits.chars);
  readMarkup(Buffer.from(value), htmlRules(writer), writer, {});
  return {
    text: writer.toMarkdown(),
    omissions: pictures === 0 ? [] : [{ kind: "pictures", count: pictures }],
  };
}

/** Handles the elements that mammoth writes. */
function htmlRules(writer: ReturnType<typeof createMarkdownWriter>) {
  const lists: { readonly isOrdered: boolean; items: number }[] = [];
  let isInItem = false;
  const endItem = (): void => {
    const list = lists.at(-1);
    if (!isInItem || list === undefined) return writer.end();
    isInItem = false;
    list.items += 1;
    writer.end(`${"  ".repeat(lists.length - 1)}${list.isOrdered ? `${list.items}.` : "-"} `);
  };
  return {
    open(name: string): undefined {
      if (name === "ul" || name === "ol") {
        // The text of an item comes before the list inside it.
        endItem();
        lists.push({ isOrdered: name === "ol", items: 0 });
      } else if (name === "li") isInItem = true;
      else if (name === "table") writer.openTable();
      else if (name === "tr") writer.openRow();
      else if (name === "td" || name === "th") writer.openCell();
      else if (name === "br") writer.text("\n");
    },
    close(name: string): void {
      const [, level] = /^h([1-6])$/.exec(name) ?? [];
      if (level !== undefined) writer.end(`${"#".repeat(Number(level))} `);
      else if (name === "p") {
        if (isInItem) endItem();
        else writer.end();
      } else if (name === "li") endItem();
      else if (name === "ul" || name === "ol") lists.pop();
      else if (name === "td" || name === "th") writer.closeCell();
      else if (name === "tr") writer.closeRow();
      else if (name === "table") writer.closeTable();
    },
  };
}

/** Returns a presentation's slides with the speaker's notes. @throws DocumentError, or a library's error */
export function pptxText(bytes: Uint8Array): DocumentText {
  const { files, names } = unpack(bytes, (name) =>
    /^ppt\/(?:presentation\.xml|(?:slides|notesSlides)\/[^/]+\.xml|(?:slides\/)?_rels\/[^/]+\.rels)$/.test(
      name,
    ),
  );
  const slides = slidesOf(files);
  if (slides.length === 0) throw new DocumentError("damaged");
  const writer = createMarkdownWriter(documentLimits.chars);
  let read = 0;
  for (const slide of slides.slice(0, documentLimits.slides)) {
    if (writer.isFull()) break;
    read += 1;
    writer.text(`Slide ${read}`);
    writer.end("## ");
    readSlide(files[slide]!, writer);
    const notes = targetsOf(files, slide).find(({ type }) => type.endsWith("/notesSlide"))?.path;
    const content = notes === undefined ? undefined : files[notes];
    if (content === undefined) continue;
    writer.text("Notes:");
    writer.end();
    readSlide(content, writer);
  }
  const pictures = countPictures(names);
  return {
    text: writer.toMarkdown(),
    omissions: [
      ...(read < slides.length ? [{ kind: "slides", read, count: slides.length } as const] : []),
      ...(pictures > 0 ? [{ kind: "pictures", count: pictures } as const] : []),
    ],
  };
}

type Files = Readonly<Record<string, Uint8Array>>;

/** Returns the paths of the slides in the order of the presentation. */
function slidesOf(files: Files): string[] {
  const presentation = files["ppt/presentation.xml"];
  if (presentation === undefined) return [];
  const targets = new Map(targetsOf(files, "ppt/presentation.xml").map(({ id, path }) => [id, path]));
  const slides: string[] = [];
  eachElement(presentation, (name, attributes) => {
    const path = name === "p:sldId" ? targets.get(attributes["r:id"] ?? "") : undefined;
    if (path !== undefined && files[path] !== undefined) slides.push(path);
  });
  return slides;
}

interface Target {
  readonly id: string;
  readonly type: string;
  readonly path: string;
}

/** Returns what a part of the archive refers to. */
function targetsOf(files: Files, part: string): Target[] {
  const slash = part.lastIndexOf("/");
  const relations = files[`${part.slice(0, slash)}/_rels/${part.slice(slash + 1)}.rels`];
  const targets: Target[] = [];
  if (relations === undefined) return targets;
  eachElement(relations, (name, { Id: id = "", Type: type = "", Target: target = "" }) => {
    if (name !== "Relationship") return;
    // People write links that are no addresses.
    const url = URL.parse(target, `file:///${part}`);
    if (url !== null) targets.push({ id, type, path: url.pathname.slice(1) });
  });
  return targets;
}

function eachElement(
  bytes: Uint8Array,
  visit: (name: string, attributes: Readonly<Record<string, string>>) => void,
): void {
  const rules = {
    open(name: string, attributes: Readonly<Record<string, string>>): undefined {
      visit(name, attributes);
    },
    close() {},
    isText: () => false,
  };
  readMarkup(bytes, rules, createMarkdownWriter(documentLimits.chars));
}

function readSlide(bytes: Uint8Array, writer: MarkdownWriter): void {
  let isRun = false;
  const rules = {
    open(name: string): undefined {
      if (name === "a:t") isRun = true;
      else if (name === "a:br") writer.text("\n");
      else if (name === "a:tbl") writer.openTable();
      else if (name === "a:tr") writer.openRow();
      else if (name === "a:tc") writer.openCell();
    },
    close(name: string): void {
      if (name === "a:t") isRun = false;
      else if (name === "a:p") writer.end();
      else if (name === "a:tc") writer.closeCell();
      else if (name === "a:tr") writer.closeRow();
      else if (name === "a:tbl") writer.closeTable();
    },
    isText: () => isRun,
  };
  readMarkup(bytes, rules, writer);
}

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
  const { default: readXlsxFile } = await import("read-excel-file/node");
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
  // This is what a spreadsheet shows for a number that is too large for a date.
  if (Number.isNaN(cell.getTime())) return "########";
  const iso = cell.toISOString();
  return iso.endsWith("T00:00:00.000Z") ? iso.slice(0, 10) : iso.replace(/\.000Z$/, "Z");
}

/** A cell can stand for a whole row of them. */
const maxRepeats = 100;

/** Returns an OpenDocument's text, sheets or slides. @throws DocumentError, or an error of the libraries */
export function openDocumentText(bytes: Uint8Array): DocumentText {
  const { files, names } = unpack(
    bytes,
    (name) => name === "content.xml" || name === "META-INF/manifest.xml",
  );
  const manifest = files["META-INF/manifest.xml"];
  if (manifest !== undefined && Buffer.from(manifest).includes("encryption-data")) {
    throw new DocumentError("encrypted");
  }
  const content = files["content.xml"];
  if (content === undefined) throw new DocumentError("damaged");
  const writer = createMarkdownWriter(documentLimits.chars);
  readMarkup(content, contentRules(writer), writer);
  const pictures = countPictures(names);
  return {
    text: writer.toMarkdown(),
    omissions: pictures === 0 ? [] : [{ kind: "pictures", count: pictures }],
  };
}

/** Handles the elements of content.xml. @see https://docs.oasis-open.org/office/OpenDocument/v1.3/ */
function contentRules(writer: MarkdownWriter): MarkupRules {
  let listDepth = 0;
  let level = 1;
  let slides = 0;
  let textDepth = 0;
  let repeated = 1;
  return {
    open(name, attributes) {
      switch (name) {
        case "text:tracked-changes":
        case "office:annotation":
        case "office:scripts":
        case "text:note-citation":
          return "skip";
        case "text:h":
          level = Math.min(6, Math.max(1, Number(attributes["text:outline-level"] ?? 1) || 1));
          textDepth += 1;
          break;
        case "text:p":
          textDepth += 1;
          break;
        case "text:s":
          writer.text(" ");
          break;
        case "text:tab":
          writer.text("\t");
          break;
        case "text:line-break":
          writer.text("\n");
          break;
        case "text:list":
          listDepth += 1;
          break;
        case "draw:page":
          slides += 1;
          writer.text(`Slide ${slides}`);
          writer.end("## ");
          break;
        case "presentation:notes":
          writer.text("Notes:");
          writer.end();
          break;
        case "table:table":
          writer.text(attributes["table:name"] ?? "");
          writer.end("## ");
          writer.openTable();
          break;
        case "table:table-row":
          writer.openRow();
          break;
        case "table:table-cell":
        case "table:covered-table-cell":
          repeated = Math.min(maxRepeats, Number(attributes["table:number-columns-repeated"] ?? 1) || 1);
          writer.openCell();
          break;
      }
      return undefined;
    },
    close(name) {
      switch (name) {
        case "text:h":
          textDepth -= 1;
          writer.end(`${"#".repeat(level)} `);
          break;
        case "text:p":
          textDepth -= 1;
          writer.end(listDepth === 0 ? "" : `${"  ".repeat(listDepth - 1)}- `);
          break;
        case "text:list":
          listDepth -= 1;
          break;
        case "table:table":
          writer.closeTable();
          break;
        case "table:table-row":
          writer.closeRow();
          break;
        case "table:table-cell":
        case "table:covered-table-cell":
          writer.closeCell(repeated);
          repeated = 1;
          break;
      }
    },
    // The indentation of the file stands between the elements.
    isText: () => textDepth > 0,
  };
}

type Attributes = Readonly<Record<string, string>>;

/** What is done with the elements of one kind of document. */
interface MarkupRules {
  /** @returns `skip` where the element's content is not read */
  open(name: string, attributes: Attributes): "skip" | undefined;
  close(name: string): void;
  /** Whether text at this point belongs to the document. By default all of it does. */
  readonly isText?: () => boolean;
}

const sliceBytes = 65_536;

/** Reads XML or HTML slice by slice into a writer, until it is full. */
function readMarkup(
  bytes: Uint8Array,
  rules: MarkupRules,
  writer: MarkdownWriter,
  options: ParserOptions = { xmlMode: true },
): void {
  let skipped = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (skipped > 0 || rules.open(name, attributes) === "skip") skipped += 1;
      },
      onclosetag(name) {
        if (skipped > 0) skipped -= 1;
        else rules.close(name);
      },
      ontext(text) {
        if (skipped === 0 && (rules.isText?.() ?? true)) writer.text(text);
      },
    },
    options,
  );
  const decoder = new TextDecoder(bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : "utf-8");
  for (let at = 0; at < bytes.length && !writer.isFull(); at += sliceBytes) {
    parser.write(decoder.decode(bytes.subarray(at, at + sliceBytes), { stream: true }));
  }
  // A document that was cut off ends here too. What was read of it stays.
  parser.end();
}

/** Builds Markdown block by block: headings, paragraphs, list items and tables. */
interface MarkdownWriter {
  /** Adds to the current line. */
  text(text: string): void;
  /** Ends the current line as a block, unless it is blank. `prefix` makes it a heading or a list item. */
  end(prefix?: string): void;
  /** Opens a table. Tables inside a cell become text of the cell. */
  openTable(): void;
  openRow(): void;
  openCell(): void;
  /** @param repeated how many cells in a row have this content; default 1 */
  closeCell(repeated?: number): void;
  closeRow(): void;
  closeTable(): void;
  /** Whether so many characters were written that no more are wanted. */
  isFull(): boolean;
  /** Returns everything so far. */
  toMarkdown(): string;
}

/** The most columns of a table. Empty ones at the end are left out. */
const maxColumns = 200;

/** @param maxChars after this many the writer is full, and what comes then may be dropped */
function createMarkdownWriter(maxChars: number): MarkdownWriter {
  const blocks: { readonly text: string; readonly isItem: boolean }[] = [];
  let chars = 0;
  let line = "";
  let tableDepth = 0;
  let rows: string[][] = [];
  let row: string[] = [];
  let cell: string[] = [];

  const push = (text: string, isItem: boolean): void => {
    blocks.push({ text, isItem });
    chars += text.length;
  };
  const end = (prefix = ""): void => {
    const text = line.replace(/[^\S\n]+/g, " ").trim();
    line = "";
    if (text === "") return;
    if (tableDepth > 0) cell.push(text.replaceAll("\n", " "));
    else push(prefix + text, /^\s*(?:- |\d)/.test(prefix));
  };
  const isOuter = (): boolean => tableDepth === 1;

  return {
    text(text) {
      line += text;
      // A paragraph without an end must not grow for ever.
      if (line.length > maxChars) end();
    },
    end,
    openTable() {
      end();
      tableDepth += 1;
      if (isOuter()) rows = [];
    },
    openRow() {
      if (isOuter()) row = [];
    },
    openCell() {
      if (isOuter()) cell = [];
    },
    closeCell(repeated = 1) {
      end();
      if (!isOuter()) return;
      const text = cell.join(" ").replaceAll("|", "\\|");
      cell = [];
      for (let times = 0; times < repeated && row.length < maxColumns; times += 1) row.push(text);
    },
    closeRow() {
      if (!isOuter()) return;
      while (row.at(-1) === "") row.pop();
      if (row.length > 0) rows.push(row);
      chars += row.reduce((sum, text) => sum + text.length + 3, 0);
      row = [];
    },
    closeTable() {
      end();
      if (isOuter()) {
        chars -= rows.flat().reduce((sum, text) => sum + text.length + 3, 0);
        if (rows.length > 0) push(toTable(rows), false);
        rows = [];
      }
      tableDepth = Math.max(0, tableDepth - 1);
    },
    isFull: () => chars > maxChars,
    toMarkdown() {
      end();
      const all = rows.length === 0 ? blocks : [...blocks, { text: toTable(rows), isItem: false }];
      return all
        .map(({ text, isItem }, index) => {
          const gap = index === 0 ? "" : isItem && all[index - 1]!.isItem ? "\n" : "\n\n";
          return gap + text;
        })
        .join("");
    },
  };
}

/** Makes a table. The first row is the header, since Markdown has no table without one. */
function toTable(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(...rows.map((row) => row.length));
  const toLine = (row: readonly string[]) => `| ${row.join(" | ")} |`;
  const [head = [], ...rest] = rows;
  const padded = [...head, ...Array.from({ length: columns - head.length }, () => "")];
  return [toLine(padded), toLine(padded.map(() => "---")), ...rest.map(toLine)].join("\n");
}
