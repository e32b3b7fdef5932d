import { Parser, type ParserOptions } from "htmlparser2";
import { DocumentError, documentLimits, type DocumentText } from "./document.ts";
import { type MarkdownWriter, createMarkdownWriter } from "./markdown-writer.ts";
import { countPictures, unpack } from "./unpack.ts";

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
export function readMarkup(
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
