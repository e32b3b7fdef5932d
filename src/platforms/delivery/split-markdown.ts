import type { ReplyContent } from "../../core/reply.ts";
import { parseFence, readFenceLine, type Fence, quoteOf } from "../../support/markdown-fences.ts";

/** Options of {@link splitMarkdown}. */
interface SplitOptions {
  /** The maximum length of a piece, in the unit of `lengthOf`. Below about 100, code blocks stay open. */
  readonly maxLength: number;
  /** Returns a length as the platform counts it. Contract: does not decrease when text is appended. */
  lengthOf(text: string): number;
  /** Splitting stops after this many pieces, and the rest of the text is left out. Default: no limit. */
  readonly maxPieces?: number;
}

/** How much of the following text is read to classify a line. */
const lookaheadChars = 512;

interface Position {
  readonly at: number;
  /** The code block that is open there. */
  readonly fence: Fence | undefined;
  readonly isMidLine: boolean;
  /** The quote markers of the line that was split. */
  readonly quote: string;
  /** The head and rule of the table whose rows go on there. */
  readonly table?: string | undefined;
}

/**
 * Splits Markdown into messages of at most `maxLength`, each well-formed by itself. Code blocks across a cut
 * are closed and reopened with their language, tables repeat their head, and split quotes keep their markers.
 * Links and mentions are not split. Only white space at the cuts is lost. A code block that is open at the
 * end (streaming text) is closed. The time is linear in the length of the text. A blank text has no pieces.
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

/** Returns the beginning of a message that continues the previous one: the reopened code block or quote. */
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
 * Returns nearly the most characters that fit behind `head`, at least one. Each step measures the whole
 * piece. So every second step tries where the limit would be if lengths were proportional.
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

/** Cuts off at most `length` characters. Returns them, the block open at their end, and the next start. */
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

/** Returns head and rule of the table that has the line as a row, or `undefined` where it is no row. */
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

/** Skips the spaces of a split line. Returns `undefined` at the end of the text. */
function afterSpaces(markdown: string, at: number, quote: string): Position | undefined {
  let start = at;
  while (markdown.charAt(start) === " " || markdown.charAt(start) === "\t") start += 1;
  if (start === markdown.length || markdown.charAt(start) === "\n") return afterBlank(markdown, start);
  return { at: start, fence: undefined, isMidLine: true, quote };
}

/** Returns the next line that is not blank, after its indentation, or `undefined` where there is none. */
function afterBlank(markdown: string, at: number): Position | undefined {
  let start = at;
  while (start < markdown.length && /\s/.test(markdown.charAt(start))) start += 1;
  if (start === markdown.length) return undefined;
  const lineStart = Math.max(at, markdown.lastIndexOf("\n", start) + 1);
  const plain = { at: start, fence: undefined, isMidLine: false, quote: "" };
  if (lineStart === start) return plain;
  // An indented code block is separated from its list item, and so starts at the margin.
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

/** What a line is, as far as a cut before it is concerned. */
type LineKind = "blank" | "heading" | "item" | "opener" | "closer" | "code" | "rule" | "text";

/** One line of a Markdown text. */
interface Line {
  /** The offset of its first character. */
  readonly start: number;
  /** The offset past its last character, without the line break. */
  readonly end: number;
  readonly kind: LineKind;
  /** The code block that is open before the line. */
  readonly fence: Fence | undefined;
  /** The code block that is open after it. */
  readonly fenceAfter: Fence | undefined;
}

const heading = /^[ \t]{0,3}#{1,6}(?:[ \t]|$)/;
const item = /^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]/;

/**
 * Returns the lines of `text`, given the code block that is open before it.
 * @param isMidLine the text begins in the middle of a line, which then neither opens nor closes a block
 */
function scanLines(text: string, openFence: Fence | undefined, isMidLine: boolean): Line[] {
  const lines: Line[] = [];
  let fence = openFence;
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const content = text.slice(start, end);
    const line: Pick<Line, "kind" | "fence" | "fenceAfter"> =
      isMidLine && start === 0
        ? { kind: fence === undefined ? "text" : "code", fence, fenceAfter: fence }
        : readLine(content, fence);
    lines.push({ start, end, ...line });
    fence = line.fenceAfter;
    start = end + 1;
  }
  return lines;
}

function readLine(content: string, open: Fence | undefined): Pick<Line, "kind" | "fence" | "fenceAfter"> {
  const { role, fence } = readFenceLine(content, open);
  const isInside = role === "code" || role === "closer";
  return {
    kind: role === "none" ? kindOf(content) : role,
    fence: isInside ? open : undefined,
    fenceAfter: fence,
  };
}

/** Whether a line is the second one of a table, below its head. */
function isTableRule(line: string): boolean {
  return line.includes("|") && line.includes("-") && /^[\s|:-]*$/.test(line);
}

function kindOf(line: string): LineKind {
  if (line.trim() === "") return "blank";
  if (heading.test(line)) return "heading";
  if (isTableRule(line)) return "rule";
  return item.test(line) ? "item" : "text";
}

/** A position where a text is cut. */
interface Cut {
  readonly at: number;
  /** The line that contains the cut, or follows it. */
  readonly line: Line;
  /** Whether the cut splits a line. */
  readonly isMidLine: boolean;
}

/** A better kind of cut is preferred only where it fills the message at least this far. */
const minFill = 0.4;

/** Created on first use, since few answers need it. */
let graphemes: Intl.Segmenter | undefined;

/** Matches what would turn the rest of a split line into a list, heading, quote, table or code block. */
const startsBlock = /^[ \t]*(?:[-+*][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|>|\||`{3}|~{3}|[-=*_]{3})/;

/**
 * Returns the best place to cut `text` at or before `end`. It prefers the end of a block, then a list item, a
 * line break, the end of a sentence or word, and at last any character. It never cuts inside a link, mention,
 * code span or grapheme, as long as one of them fits a message. The cut is always past the start.
 */
function chooseCut(text: string, lines: readonly Line[], end: number): Cut {
  const least = Math.floor(end * minFill);
  const atLine = cutsBetweenLines(lines, end).find((cut) => cut !== undefined && cut.at >= least);
  if (atLine !== undefined) return atLine;
  const inLine = cutsInLines(text, lines, end);
  const best = inLine.find((cut) => cut !== undefined && cut.at >= least);
  if (best !== undefined) return best;
  const fallbacks = [...cutsBetweenLines(lines, end), ...inLine].filter((cut) => cut !== undefined);
  const last = fallbacks.sort((a, b) => b.at - a.at)[0];
  return last !== undefined && last.at >= end / 8 ? last : cutAnywhere(text, lines, end);
}

/** Returns the last cut of each kind: between blocks, before an item, between lines. */
function cutsBetweenLines(lines: readonly Line[], end: number): (Cut | undefined)[] {
  let block: Cut | undefined;
  let item: Cut | undefined;
  let plain: Cut | undefined;
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1];
    if (line.start > end) break;
    // A block keeps its first line, and a heading keeps what follows it.
    if (before === undefined || line.kind === "closer" || before.kind === "opener") continue;
    // A table keeps its head, the rule below it and its first row.
    if (line.kind === "rule" || before.kind === "rule") continue;
    if (line.kind === "blank" || lastFilled(lines, index)?.kind === "heading") continue;
    const cut = { at: line.start, line, isMidLine: false };
    const isNewBlock = before.kind === "blank" || before.kind === "closer";
    if (line.fence !== undefined) plain = cut;
    else if (isNewBlock || line.kind === "opener" || line.kind === "heading") block = cut;
    else if (line.kind === "item") item = cut;
    else plain = cut;
  }
  return [block, item, plain];
}

/** Whether the first part of a split line would open a code block that the whole does not: "```a `b` c". */
function opensBlock(part: string): boolean {
  return parseFence(part) !== undefined;
}

function lastFilled(lines: readonly Line[], index: number): Line | undefined {
  let at = index - 1;
  while (lines[at]?.kind === "blank") at -= 1;
  return lines[at];
}

/** Returns the last cut after a sentence and the last between words. In code there is only the latter. */
function cutsInLines(text: string, lines: readonly Line[], end: number): (Cut | undefined)[] {
  let word: Cut | undefined;
  for (const line of lines.toReversed()) {
    if (line.start >= end || line.kind === "opener" || line.kind === "closer") continue;
    const content = text.slice(line.start, line.end);
    const spans = line.kind === "code" ? [] : unbreakableSpans(content);
    for (let at = Math.min(end, line.end) - line.start; at > 0; at -= 1) {
      if (!isAfterWord(content, at) || isInside(spans, at) || startsBlock.test(content.slice(at, at + 80))) {
        continue;
      }
      if (line.kind !== "code" && opensBlock(content.slice(0, at))) break;
      const cut = { at: line.start + at, line, isMidLine: true };
      word ??= cut;
      if (line.kind !== "code" && endsSentence(content, at)) return [cut, word];
    }
  }
  return [undefined, word];
}

/** Whether a word ends at `at`: before white space, or after CJK punctuation. */
function isAfterWord(line: string, at: number): boolean {
  const before = line.charAt(at - 1);
  if (before === " " || before === "\t") return false;
  const next = line.charAt(at);
  return (
    next === " " || next === "\t" || (next !== "" && /[。！？；，、]/.test(before) && !/[」』）”]/.test(next))
  );
}

function endsSentence(line: string, at: number): boolean {
  return /[.!?…:][)"'”’\]*_]{0,3}$|[。！？][」』）”]?$/.test(line.slice(Math.max(0, at - 5), at));
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Matches links, pictures, URLs, and mentions, emoji and times in angle brackets. */
const unbreakable =
  /!?\[[^[\]]*\]\((?:[^()]|\([^()]*\))*\)|<[@#:!/a-z][^<>]{0,2000}>|https?:\/\/[^\s<>]+|:[a-z0-9_+-]{1,64}:/gi;

/** Returns the parts of a line that must not be split, in order. */
function unbreakableSpans(line: string): Span[] {
  const spans = [...line.matchAll(unbreakable)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
  // The halves of a run without a closing one could open a span.
  return [...spans, ...codeSpans(line)].sort((a, b) => a.start - b.start);
}

/**
 * Returns code spans, each from a run of backticks to the next run of the same length, in order. A run
 * without a closing run is one by itself, which is not closed. The time is linear in the length of the line.
 */
export function codeSpans(line: string): (Span & { readonly isClosed: boolean })[] {
  const runs = [...line.matchAll(/`+/g)].map((match) => ({ at: match.index, length: match[0].length }));
  const closers: (number | undefined)[] = [];
  const nextOfLength = new Map<number, number>();
  for (const [index, { length }] of [...runs.entries()].toReversed()) {
    closers[index] = nextOfLength.get(length);
    nextOfLength.set(length, index);
  }
  const spans: (Span & { readonly isClosed: boolean })[] = [];
  for (let index = 0; index < runs.length; index += 1) {
    const closer = closers[index];
    const { at: start } = runs[index]!;
    const { at, length } = runs[closer ?? index]!;
    spans.push({ start, end: at + length, isClosed: closer !== undefined });
    index = closer ?? index;
  }
  return spans;
}

function isInside(spans: readonly Span[], at: number): boolean {
  return spans.some((span) => span.start < at && at < span.end);
}

/** Cuts one endless word: before a link that does not fit, else between two graphemes. */
function cutAnywhere(text: string, lines: readonly Line[], end: number): Cut {
  const line = lines.findLast((candidate) => candidate.start < end) ?? lines[0];
  if (line === undefined) throw new RangeError("no lines to cut");
  const content = text.slice(line.start, line.end);
  const limit = Math.min(end, line.end) - line.start;
  if (line.kind === "closer" && line.start > 0) return { at: line.start, line, isMidLine: false };
  const spans = line.kind === "code" ? [] : unbreakableSpans(content);
  const split = spans.find((span) => span.start < limit && limit < span.end && span.start > end / 4);
  let at = graphemeStart(content, split?.start ?? limit);
  // This avoids positions where the next message would begin with a block by accident.
  for (let steps = 0; steps < 100 && at > 1 && isBadStart(content, at); steps += 1) {
    at = graphemeStart(content, at - 1);
  }
  if (line.start > 0 && (at <= 0 || isBadStart(content, at) || opensBlock(content.slice(0, at)))) {
    return { at: line.start, line, isMidLine: false };
  }
  if (at <= 0) at = firstCharacter(content, limit);
  return { at: line.start + at, line, isMidLine: at < content.length };
}

function isBadStart(line: string, at: number): boolean {
  const next = line.charAt(at);
  const isInRun = (next === "`" || next === "~") && line.charAt(at - 1) === next;
  return isInRun || startsBlock.test(line.slice(at, at + 80));
}

/** Returns the start of the grapheme that contains `at`, judged by 100 characters around it. */
function graphemeStart(text: string, at: number): number {
  if (at >= text.length) return text.length;
  let from = Math.max(0, at - 50);
  while (from > 0 && from < at && !/[\s!-~]/.test(text.charAt(from))) from += 1;
  if (from === at) from = Math.max(0, at - 50);
  graphemes ??= new Intl.Segmenter("und", { granularity: "grapheme" });
  const segment = graphemes.segment(text.slice(from, at + 50)).containing(at - from);
  const start = from + (segment?.index ?? at - from);
  // An endless grapheme, such as a letter with hundreds of accents, is split between code points.
  return start > 0 && at - start < 50 ? start : codePointStart(text, at);
}

function codePointStart(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** Returns the length of at least one code point, even where `limit` is smaller. */
function firstCharacter(text: string, limit: number): number {
  const first = text.codePointAt(0) ?? 0;
  return Math.max(first > 0xffff ? 2 : 1, Math.min(limit, 1));
}

/** Joins the lead and the text into one Markdown document. */
export function toMarkdown({ lead = "", text }: ReplyContent): string {
  return lead === "" ? text : `${lead}\n\n${text}`;
}
