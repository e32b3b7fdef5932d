import { toText, type Fields } from "./workspace.ts";

type Refuse = (problem: string) => void;

const listStyles = ["bullet", "ordered"];

/**
 * Checks a block of rich text: sections, and lists of sections, of texts and links. Parley has no other
 * elements.
 * @see https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
 */
export function checkRichText(block: Fields, at: string, refuse: Refuse): void {
  const elements = block["elements"];
  if (!Array.isArray(elements) || elements.length === 0) return refuse(`rich_text needs elements ${at}`);
  for (const element of elements as Fields[]) {
    if (element["type"] === "rich_text_list") checkList(element, at, refuse);
    else checkSection(element, at, refuse);
  }
}

function checkList(list: Fields, at: string, refuse: Refuse): void {
  if (!listStyles.includes(toText(list["style"]))) refuse(`style of a list ${at}`);
  const { offset = 0, elements } = list;
  if (typeof offset !== "number" || !Number.isInteger(offset) || offset < 0) refuse(`offset of a list ${at}`);
  if (!Array.isArray(elements) || elements.length === 0) return refuse(`a list needs elements ${at}`);
  for (const element of elements as Fields[]) checkSection(element, at, refuse);
}

function checkSection(section: Fields, at: string, refuse: Refuse): void {
  if (section["type"] !== "rich_text_section") refuse(`unsupported type: ${toText(section["type"])} ${at}`);
  const elements = section["elements"];
  if (!Array.isArray(elements)) return refuse(`a section needs elements ${at}`);
  for (const element of elements as Fields[]) {
    const text = element["text"];
    if (element["type"] === "link") {
      const url = element["url"];
      if (typeof url !== "string" || url === "" || url.length > 3000) refuse(`url of a link ${at}`);
      if (text !== undefined && (typeof text !== "string" || text === "")) refuse(`text of a link ${at}`);
    } else if (element["type"] === "text") {
      if (typeof text !== "string" || text === "") refuse(`must be more than 0 characters ${at}`);
    } else refuse(`unsupported type: ${toText(element["type"])} ${at}`);
  }
}

/**
 * What people see of a block of rich text, a line for each section; a link with its address in angle
 * brackets.
 */
export function linesOfRichText(block: Fields): string[] {
  return (block["elements"] as Fields[]).flatMap((element) => {
    if (element["type"] !== "rich_text_list") return [lineOf(element)];
    const { offset = 0, style } = element;
    const from = 1 + (offset as number);
    return (element["elements"] as Fields[]).map(
      (section, index) => `${style === "ordered" ? `${from + index}.` : "•"} ${lineOf(section)}`,
    );
  });
}

function lineOf(section: Fields): string {
  return (section["elements"] as Fields[])
    .map((element) => {
      const text = toText(element["text"]);
      return element["type"] === "link" ? `${text} <${toText(element["url"])}>` : text;
    })
    .join("");
}
