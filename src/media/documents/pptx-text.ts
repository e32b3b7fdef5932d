import { DocumentError, documentLimits, type DocumentText } from "./document.ts";
import { createMarkdownWriter, type MarkdownWriter } from "./markdown-writer.ts";
import { readMarkup } from "./open-document-text.ts";
import { countPictures, unpack } from "./unpack.ts";

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
    const path = new URL(target, `file:///${part}`).pathname.slice(1);
    targets.push({ id, type, path });
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
