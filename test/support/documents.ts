import { deflateSync } from "node:zlib";
import { strToU8, zipSync } from "fflate";

/** The options of {@link makePdf}. */
export interface PdfOptions {
  /** Whether a password that nobody knows protects it. */
  readonly isEncrypted?: boolean;
  /** Whether the first page has a picture. */
  readonly hasPicture?: boolean;
}

/** Makes a PDF with the given lines on each page. An empty page has no text, as a scan has none. */
export function makePdf(pages: readonly (readonly string[])[], options: PdfOptions = {}): Uint8Array {
  const objects: string[] = [];
  const add = (body: string): number => objects.push(body);
  const kids = pages.map((_, index) => `${4 + index * 2} 0 R`).join(" ");
  add("<< /Type /Catalog /Pages 2 0 R >>");
  add(`<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`);
  add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
  for (const [index, lines] of pages.entries()) {
    const own = 4 + index * 2;
    add(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents ${own + 1} 0 R /Resources << /Font << /F1 3 0 R >> >> >>`,
    );
    const shown = lines.map((line) => `(${line.replaceAll(/[()\\]/g, "\\$&")}) Tj 0 -14 Td`).join("\n");
    const content = `BT /F1 11 Tf 50 780 Td\n${shown}\nET`;
    add(`<< /Length ${content.length} >>\nstream\n${content}\nendstream`);
  }
  if (options.hasPicture === true) {
    add(
      "<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\nstream\n0\nendstream",
    );
  }
  let encrypt = "";
  if (options.isEncrypted === true) {
    const key = "5a".repeat(32);
    const number = add(`<< /Filter /Standard /V 1 /R 2 /O <${key}> /U <${key}> /P -4 >>`);
    encrypt = `/Encrypt ${number} 0 R /ID [<${"00".repeat(16)}> <${"00".repeat(16)}>]`;
  }
  return toPdf(objects, encrypt);
}

/** Makes a PDF of 1 kB whose page is so many bytes of blanks, packed twice. */
export function makePdfBomb(bytes: number): Uint8Array {
  const packed = deflateSync(deflateSync(Buffer.alloc(bytes, " ")));
  const filters = `/Length ${packed.length} /Filter [/FlateDecode /FlateDecode]`;
  return toPdf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
    "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
    `<< ${filters} >>\nstream\n${packed.toString("latin1")}\nendstream`,
  ]);
}

/** Makes a PDF of these objects, numbered from 1, the first of which is its catalogue. */
function toPdf(objects: readonly string[], encrypt = ""): Uint8Array {
  const offsets: number[] = [];
  let file = "%PDF-1.4\n";
  for (const [index, body] of objects.entries()) {
    offsets.push(file.length);
    file += `${index + 1} 0 obj\n${body}\nendobj\n`;
  }
  const table = offsets.map((offset) => `${String(offset).padStart(10, "0")} 00000 n \n`).join("");
  file += `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}`;
  file += `trailer << /Size ${objects.length + 1} /Root 1 0 R ${encrypt} >>\nstartxref\n${file.lastIndexOf("xref\n0")}\n%%EOF\n`;
  return new Uint8Array(Buffer.from(file, "latin1"));
}

type Entries = Readonly<Record<string, string | Uint8Array>>;

function archive(entries: Entries): Uint8Array<ArrayBuffer> {
  const files = Object.entries(entries).map(([name, content]) => [
    name,
    typeof content === "string" ? strToU8(content) : content,
  ]);
  return new Uint8Array(zipSync(Object.fromEntries(files) as Record<string, Uint8Array>, { level: 6 }));
}

const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const packageRelations = "http://schemas.openxmlformats.org/package/2006/relationships";
const word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const sheetMl = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const drawing = "http://schemas.openxmlformats.org/drawingml/2006/main";
const presentation = "http://schemas.openxmlformats.org/presentationml/2006/main";

function contentTypes(parts: Readonly<Record<string, string>>): string {
  const overrides = Object.entries(parts)
    .map(
      ([name, type]) =>
        `<Override PartName="/${name}" ContentType="application/vnd.openxmlformats-officedocument.${type}+xml"/>`,
    )
    .join("");
  return `${head}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Default Extension="png" ContentType="image/png"/>${overrides}</Types>`;
}

function relationsFile(
  targets: readonly (readonly [id: string, type: string, target: string, mode?: "External"])[],
): string {
  const all = targets.map(
    ([id, type, target, mode = "Internal"]) =>
      `<Relationship Id="${id}" Type="${relations}/${type}" Target="${target}" TargetMode="${mode}"/>`,
  );
  return `${head}<Relationships xmlns="${packageRelations}">${all.join("")}</Relationships>`;
}

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** One block of a made Word document. A table is rows of cells. */
export type WordBlock =
  | string
  | { readonly heading: string }
  | { readonly table: readonly (readonly string[])[] };

/** Makes a Word document. No text shows the `picture`, and `extra` adds entries to the archive. */
export function makeDocx(
  blocks: readonly WordBlock[],
  { picture, extra = {} }: { readonly picture?: Uint8Array; readonly extra?: Entries } = {},
): Uint8Array<ArrayBuffer> {
  const paragraph = (text: string, style = "") =>
    `<w:p>${style}<w:r><w:t xml:space="preserve">${escape(text)}</w:t></w:r></w:p>`;
  const body = blocks.map((block) => {
    if (typeof block === "string") return paragraph(block);
    if ("heading" in block) return paragraph(block.heading, '<w:pPr><w:pStyle w:val="Heading1"/></w:pPr>');
    const rows = block.table.map(
      (row) => `<w:tr>${row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join("")}</w:tr>`,
    );
    return `<w:tbl>${rows.join("")}</w:tbl>`;
  });
  return archive({
    "[Content_Types].xml": contentTypes({ "word/document.xml": "wordprocessingml.document.main" }),
    "_rels/.rels": relationsFile([["rId1", "officeDocument", "word/document.xml"]]),
    "word/document.xml": `${head}<w:document xmlns:w="${word}"><w:body>${body.join("")}</w:body></w:document>`,
    ...(picture === undefined ? {} : { "word/media/image1.png": picture }),
    ...extra,
  });
}

/** A cell of a made workbook. The number of a `date` is shown as one. */
export type SheetCell = string | number | { readonly date: number };

/** Makes a workbook of cells by sheet name. */
export function makeXlsx(
  sheets: Readonly<Record<string, readonly (readonly SheetCell[])[]>>,
): Uint8Array<ArrayBuffer> {
  const names = Object.keys(sheets);
  const toCell = (value: SheetCell, reference: string) => {
    if (typeof value === "object") return `<c r="${reference}" s="1"><v>${value.date}</v></c>`;
    return typeof value === "number"
      ? `<c r="${reference}"><v>${value}</v></c>`
      : `<c r="${reference}" t="inlineStr"><is><t>${escape(value)}</t></is></c>`;
  };
  const toSheet = (rows: readonly (readonly SheetCell[])[]) => {
    const data = rows.map(
      (row, y) =>
        `<row r="${y + 1}">${row.map((value, x) => toCell(value, `${String.fromCharCode(65 + x)}${y + 1}`)).join("")}</row>`,
    );
    return `${head}<worksheet xmlns="${sheetMl}"><sheetData>${data.join("")}</sheetData></worksheet>`;
  };
  return archive({
    "[Content_Types].xml": contentTypes({ "xl/workbook.xml": "spreadsheetml.sheet.main" }),
    "_rels/.rels": relationsFile([["rId1", "officeDocument", "xl/workbook.xml"]]),
    "xl/workbook.xml": `${head}<workbook xmlns="${sheetMl}" xmlns:r="${relations}"><sheets>${names
      .map((name, index) => `<sheet name="${escape(name)}" sheetId="${index + 1}" r:id="rId${index + 1}"/>`)
      .join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relationsFile(
      names.map((_, index) => [`rId${index + 1}`, "worksheet", `worksheets/sheet${index + 1}.xml`] as const),
    ),
    "xl/styles.xml": `${head}<styleSheet xmlns="${sheetMl}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    ...Object.fromEntries(
      Object.values(sheets).map((rows, index) => [`xl/worksheets/sheet${index + 1}.xml`, toSheet(rows)]),
    ),
  });
}

/** Makes a presentation, whose slides link to `link`. They lie in the archive in the reverse order. */
export function makePptx(
  slides: readonly { readonly lines: readonly string[]; readonly notes?: string; readonly link?: string }[],
): Uint8Array<ArrayBuffer> {
  const paragraphs = (lines: readonly string[]) =>
    lines.map((line) => `<a:p><a:r><a:t>${escape(line)}</a:t></a:r></a:p>`).join("");
  const page = (root: string, lines: readonly string[]) =>
    `${head}<p:${root} xmlns:p="${presentation}" xmlns:a="${drawing}"><p:cSld><p:spTree><p:sp><p:txBody>${paragraphs(lines)}</p:txBody></p:sp></p:spTree></p:cSld></p:${root}>`;
  const numberOf = (index: number) => slides.length - index;
  const entries: Record<string, string> = {};
  for (const [index, { lines, notes, link }] of slides.entries()) {
    const number = numberOf(index);
    entries[`ppt/slides/slide${number}.xml`] = page("sld", lines);
    entries[`ppt/slides/_rels/slide${number}.xml.rels`] = relationsFile([
      ...(link === undefined ? [] : [["rId2", "hyperlink", link, "External"] as const]),
      ...(notes === undefined
        ? []
        : [["rId1", "notesSlide", `../notesSlides/notesSlide${number}.xml`] as const]),
    ]);
    if (notes !== undefined) entries[`ppt/notesSlides/notesSlide${number}.xml`] = page("notes", [notes]);
  }
  return archive({
    "[Content_Types].xml": contentTypes({ "ppt/presentation.xml": "presentationml.presentation.main" }),
    "ppt/presentation.xml": `${head}<p:presentation xmlns:p="${presentation}" xmlns:r="${relations}"><p:sldIdLst>${slides
      .map((_, index) => `<p:sldId id="${256 + index}" r:id="rId${index + 1}"/>`)
      .join("")}</p:sldIdLst></p:presentation>`,
    "ppt/_rels/presentation.xml.rels": relationsFile(
      slides.map((_, index) => [`rId${index + 1}`, "slide", `slides/slide${numberOf(index)}.xml`] as const),
    ),
    ...entries,
  });
}

/** Makes an OpenDocument file with the given content of its `office:body`. */
export function makeOpenDocument(
  kind: "text" | "spreadsheet" | "presentation",
  body: string,
  { isEncrypted = false } = {},
): Uint8Array<ArrayBuffer> {
  const names = ["office", "text", "table", "draw", "presentation"]
    .map((name) => `xmlns:${name}="urn:oasis:names:tc:opendocument:xmlns:${name}:1.0"`)
    .join(" ");
  const manifest = isEncrypted ? "<manifest:encryption-data/>" : "";
  return new Uint8Array(
    zipSync({
      mimetype: [strToU8(`application/vnd.oasis.opendocument.${kind}`), { level: 0 }],
      "content.xml": strToU8(
        `${head}<office:document-content ${names}>\n <office:body>\n${body}\n</office:body>\n</office:document-content>`,
      ),
      "META-INF/manifest.xml": strToU8(`${head}<manifest:manifest>${manifest}</manifest:manifest>`),
    }),
  );
}

/** Makes the beginning of a file in the container of older Office formats, with one name in its directory. */
export function makeCompound(name: "Workbook" | "WordDocument" | "EncryptedPackage"): Uint8Array {
  const file = Buffer.alloc(4096);
  Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1]).copy(file);
  file.write("Root Entry", 1024, "utf16le");
  file.write(name, 1152, "utf16le");
  return new Uint8Array(file);
}

/** Makes a Word document whose text unpacks to so many bytes of blanks. The file is far smaller. */
export function makeDocxBomb(unpackedBytes: number): Uint8Array<ArrayBuffer> {
  return makeDocx(["x"], { extra: { "word/document.xml": new Uint8Array(unpackedBytes).fill(0x20) } });
}
