import { chooseCut } from "./markdown-cuts.ts";
import { parseFence, quoteOf, type Fence } from "../../support/markdown-fences.ts";
import { scanLines, type Line } from "./markdown-lines.ts";

/** Options of {@link splitMarkdown}. */
export interface SplitOptions {
  /** Maximum length of a piece, in the unit of `lengthOf`. Below about 100, code blocks are not closed. */
  readonly maxLength: number;
  /** Length as the platform counts it, e.g. in bytes. Contract: does not decrease when text is appended. */
  lengthOf(text: string): number;
  /** Splitting stops after so many pieces; text behind them is left out. Default: no limit. */
  readonly maxPieces?: number;
}

/** How much of the following text is read to classify a line. */
const lookaheadChars = 512;

interface Position {
  readonly at: number;
  /** The code block that is open there. */
  readonly fence: Fence | undefined;
  readonly isMidLine: boolean;
  /** Quote markers of the line that was split. */
  readonly quote: string;
  /** Head and rule of the table whose rows go on there. */
  readonly table?: string | undefined;
}

/**
 * Splits Markdown into messages of at most `maxLength`, each well-formed by itself: code blocks across a cut are
 * closed and reopened with their language, tables repeat their head, split quotes keep their markers, links and
 * mentions are not split. Only white space at the cuts is lost. A code block that is open at the end (streaming text) is closed. Linear in the
 * length of the text. No pieces for blank text.
 */
export function splitMarkdown(markdown: string, options: SplitOptions): string[] {
  const pieces: string[] = [];
  let position: Position | undefined = afterBlank(markdown, 0);
  while (position !== undefined && pieces.length < (options.maxPieces ?? Infinity)) {
    const { piece, next }: { piece: string; next: Position | undefined } = takePiece(
      markdown,
      position,
      options,
    );
    pieces.push(piece);
    position = next;
  }
  return pieces;
}

function takePiece(markdown: string, from: Position, options: SplitOptions) {
  const head = headOf(from, options);
  let length = fittingLength(markdown, from.at, head, options);
  for (;;) {
    const { body, fence, next } = cutAfter(markdown, from, length);
    const piece = head + dedent(body, from) + (fence === undefined ? "" : `\n${fence.quote}${fence.marker}`);
    const excess = options.lengthOf(piece) - options.maxLength;
    if (excess <= 0 || length <= 1) return { piece, next };
    length = Math.max(1, Math.min(length, next === undefined ? length : next.at - from.at) - excess);
  }
}

/** The beginning of a message that continues the previous one: the reopened code block or quote. */
function headOf(from: Position, options: SplitOptions): string {
  const { fence, isMidLine, quote } = from;
  if (fence === undefined) {
    const table = from.table === undefined ? "" : `${from.table}\n`;
    if (options.lengthOf(table) * 2 <= options.maxLength) return (isMidLine ? quote : "") + table;
    return isMidLine ? quote : "";
  }
  const splitQuote = isMidLine ? fence.quote : "";
  const head = `${fence.quote}${fence.marker}${fence.language}\n${splitQuote}`;
  if (options.lengthOf(head) * 2 <= options.maxLength) return head;
  return `${fence.quote}${fence.marker}\n${splitQuote}`;
}

/**
 * Nearly the most characters that fit behind `head`; at least one. Each step measures the whole piece, so every second one
 * is taken where the limit would be if lengths were proportional.
 */
function fittingLength(markdown: string, at: number, head: string, options: SplitOptions): number {
  const { maxLength } = options;
  const measure = (length: number) => options.lengthOf(head + markdown.slice(at, at + length));
  let most = Math.min(markdown.length - at, maxLength);
  let above = measure(most);
  if (above <= maxLength) {
    // Where code points are counted, more UTF-16 units fit.
    const more = Math.min(markdown.length - at, maxLength * 2);
    if (more === most || measure(most + 1) > maxLength) return most;
    most = more;
    above = measure(most);
    if (above <= maxLength) return most;
  }
  let least = 1;
  let below = 0;
  for (let step = 0; most - least > 1 + maxLength / 100; step += 1) {
    const share = step % 2 === 0 ? (maxLength - below) / (above - below) : 0.5;
    const next = Math.min(most - 1, Math.max(least + 1, Math.floor(least + (most - least) * share)));
    const length = measure(next);
    if (length <= maxLength) [least, below] = [next, length];
    else [most, above] = [next, length];
  }
  return least;
}

/** Cuts off at most `length` characters: returns their text, the block open at their end, and where the rest starts. */
function cutAfter(markdown: string, from: Position, length: number) {
  const window = markdown.slice(from.at, from.at + length + lookaheadChars);
  const lines = scanLines(window, from.fence, from.isMidLine);
  if (from.at + length >= markdown.length) {
    return { body: window.trimEnd(), fence: lines.at(-1)?.fenceAfter, next: undefined };
  }
  const { at, line, isMidLine } = chooseCut(window, lines, length);
  const isInLine = at > line.start;
  const fence = isInLine && line.kind === "opener" ? line.fenceAfter : line.fence;
  const body = window.slice(0, at);
  if (fence === undefined) {
    const next = isMidLine
      ? afterSpaces(markdown, from.at + at, quoteAt(window, line, from))
      : afterBlank(markdown, from.at + at);
    const table = isMidLine ? undefined : tableAt(window, lines, line, from);
    return { body: body.trimEnd(), fence, next: next === undefined ? undefined : { ...next, table } };
  }
  const rest = isMidLine ? undefined : lines[lines.indexOf(line) + (isInLine ? 1 : 0)];
  // Where only the block's closing line is left, the added one replaces it.
  const next =
    rest?.kind === "closer"
      ? afterBlank(markdown, from.at + rest.end)
      : inFence(markdown, from.at + at, fence, isMidLine);
  return { body: body.replace(/\n$/, ""), fence, next };
}

/** Head and rule of the table of which a line is a row. `undefined`: it is none. */
function tableAt(window: string, lines: readonly Line[], line: Line, from: Position): string | undefined {
  const textOf = ({ start, end }: Line): string => window.slice(start, end);
  const isRow = (one: Line): boolean => one.kind === "text" && textOf(one).includes("|");
  if (!isRow(line)) return undefined;
  for (let index = lines.indexOf(line) - 1; index >= 0; index -= 1) {
    const above = lines[index];
    const head = lines[index - 1];
    if (above === undefined) return undefined;
    if (above.kind === "rule" && head !== undefined) return `${textOf(head)}\n${textOf(above)}`;
    if (!isRow(above)) return undefined;
  }
  return from.table;
}

function quoteAt(window: string, line: Line, from: Position): string {
  return from.isMidLine && line.start === 0 ? from.quote : quoteOf(window.slice(line.start, line.end));
}

function inFence(markdown: string, at: number, fence: Fence, isMidLine: boolean): Position | undefined {
  const start = !isMidLine && markdown.charAt(at) === "\n" ? at + 1 : at;
  return markdown.slice(start, start + 64).trim() === "" && markdown.slice(start).trim() === ""
    ? undefined
    : { at: start, fence, isMidLine, quote: "" };
}

/** After the spaces of a split line; `undefined` at the end of the text. */
function afterSpaces(markdown: string, at: number, quote: string): Position | undefined {
  let start = at;
  while (markdown.charAt(start) === " " || markdown.charAt(start) === "\t") start += 1;
  if (start === markdown.length || markdown.charAt(start) === "\n") return afterBlank(markdown, start);
  return { at: start, fence: undefined, isMidLine: true, quote };
}

/** At the next line that is not blank, after its indentation; `undefined` where there is none. */
function afterBlank(markdown: string, at: number): Position | undefined {
  let start = at;
  while (start < markdown.length && /\s/.test(markdown.charAt(start))) start += 1;
  if (start === markdown.length) return undefined;
  const lineStart = Math.max(at, markdown.lastIndexOf("\n", start) + 1);
  const plain = { at: start, fence: undefined, isMidLine: false, quote: "" };
  if (lineStart === start) return plain;
  // An indented code block is separated from its list item: it starts at the margin.
  const newline = markdown.indexOf("\n", start);
  const line = newline === -1 ? "" : markdown.slice(lineStart, Math.min(newline, lineStart + 200));
  const fence = parseFence(line);
  const isBare = fence !== undefined && line.trim() === fence.marker + fence.language;
  return isBare ? { at: newline + 1, fence, isMidLine: false, quote: "" } : plain;
}

/** Removes the indentation of the list item from the lines of a continued block. */
function dedent(body: string, from: Position): string {
  const { fence } = from;
  if (fence === undefined || fence.indent === 0) return body;
  const indentation = new RegExp(`^[ \\t]{1,${fence.indent}}`);
  const lines = scanLines(body, fence, from.isMidLine);
  const count = lines.findIndex((line) => line.kind !== "code" && line.kind !== "closer");
  const continued = count === -1 ? lines.length : count;
  return body
    .split("\n")
    .map((line, index) => {
      const isSplit = from.isMidLine && index === 0;
      return index < continued && !isSplit ? line.replace(indentation, "") : line;
    })
    .join("\n");
}
