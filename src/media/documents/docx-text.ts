import mammoth from "mammoth";
import type { DocumentText } from "./document.ts";
import { documentLimits } from "./document.ts";
import { createMarkdownWriter } from "./markdown-writer.ts";
import { readMarkup } from "./open-document-text.ts";
import { countPictures, repack, unpack } from "./unpack.ts";

/** Returns the text of a Word document. @throws DocumentError `too-large`, or an error of the libraries */
export async function docxText(bytes: Uint8Array): Promise<DocumentText> {
  const { files, names } = unpack(bytes, (name) => /\.(?:xml|rels)$/i.test(name));
  const pictures = countPictures(names);
  // mammoth looks for the pictures, which it must not read.
  const emptied = names.filter((name) => files[name] === undefined && !name.endsWith("/"));
  const whole = { ...files, ...Object.fromEntries(emptied.map((name) => [name, new Uint8Array()])) };
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
