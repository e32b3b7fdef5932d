import { readFenceLine, type Fence } from "../../support/markdown-fences.ts";

/**
 * The part of a growing Markdown text that later text does not change: a stream can only be appended to. Held back are,
 * at the end: a code block, a table, and the text from an unclosed emphasis, code span or bracket on. Linear in the
 * length of the text.
 */
export function committablePrefix(markdown: string): string {
  const blockStart = heldBlockStart(markdown);
  if (blockStart !== undefined) return markdown.slice(0, blockStart);
  const paragraphStart = lastParagraphStart(markdown);
  const heldAt = unclosedStart(markdown.slice(paragraphStart));
  return heldAt === undefined ? markdown : markdown.slice(0, paragraphStart + heldAt);
}

/** Whether a text has something that Slack would make a link of; its streams unfurl links. */
export function hasLink(markdown: string): boolean {
  return /:\/\/|\]\(|\]:|www\.|mailto:|[a-z\d-]\.[a-z]{2,}[/?]/i.test(markdown);
}

/** Where a code block or table begins that is the end of the text. `undefined`: the text ends otherwise. */
function heldBlockStart(markdown: string): number | undefined {
  let at = 0;
  let fence: Fence | undefined;
  let start: number | undefined;
  let isTable = false;
  for (const line of markdown.split("\n")) {
    const { role, fence: next } = readFenceLine(line, fence);
    fence = next;
    const isRow = role === "none" && /^\s*\|/.test(line);
    if (role === "opener" || (isRow && !isTable)) start = at;
    else if (role === "none" && !isRow && line.trim() !== "") start = undefined;
    isTable = isRow;
    at += line.length + 1;
  }
  return start;
}

function lastParagraphStart(markdown: string): number {
  const start = markdown.lastIndexOf("\n\n");
  return start === -1 ? 0 : start + 2;
}

/** Backticks, emphasis and brackets; list markers and lone stars are no emphasis, nor are underscores inside words. */
const delimiter = /`+|\*+|~~|(?<![\p{L}\p{N}])_+|_+(?![\p{L}\p{N}])|[[\]]/gu;

/** Where the first delimiter stands that is not closed. */
function unclosedStart(paragraph: string): number | undefined {
  const open: { readonly mark: string; readonly at: number }[] = [];
  for (const { 0: mark, index: at } of paragraph.matchAll(delimiter)) {
    const top = open.at(-1);
    const isInCode = top?.mark.startsWith("`") === true;
    if (isInCode) {
      if (mark === top.mark) open.pop();
      continue;
    }
    if (mark === "]") {
      const bracket = open.findLastIndex((one) => one.mark === "[");
      // What follows makes it a link, or not.
      const isDecided = at + 1 < paragraph.length;
      if (bracket !== -1 && isDecided) open.splice(bracket);
      continue;
    }
    const isAlone = /^\*+$/.test(mark) && /\s|^$/.test(paragraph[at + mark.length] ?? "");
    const match = open.findLastIndex((one) => one.mark === mark);
    if (match !== -1 && mark !== "[") open.splice(match);
    else if (!isAlone || at + mark.length === paragraph.length) open.push({ mark, at });
  }
  return open[0]?.at;
}
