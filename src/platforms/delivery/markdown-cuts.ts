import { parseFence } from "../../support/markdown-fences.ts";
import type { Line } from "./markdown-lines.ts";

/** A position where a text is cut. */
export interface Cut {
  readonly at: number;
  /** The line that contains the cut, or follows it. */
  readonly line: Line;
  /** Whether it splits a line. */
  readonly isMidLine: boolean;
}

/** A better kind of cut is preferred only where it fills the message at least this far. */
const minFill = 0.4;

/** Created on first use: it costs some milliseconds, and few answers need it. */
let graphemes: Intl.Segmenter | undefined;

/** What would turn the rest of a split line into a list, heading, quote, table or code block. */
const startsBlock = /^[ \t]*(?:[-+*][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|>|\||`{3}|~{3}|[-=*_]{3})/;

/**
 * The best place to cut `text` at or before `end`: between blocks, else before a list item, at a line break,
 * after a sentence, between words, at last between two characters. Never inside a link, mention, code span or
 * grapheme, as long as one of them fits a message. Always past the start.
 */
export function chooseCut(text: string, lines: readonly Line[], end: number): Cut {
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

/** The last cut of each kind: between blocks, before an item, between lines. */
function cutsBetweenLines(lines: readonly Line[], end: number): (Cut | undefined)[] {
  let block: Cut | undefined;
  let item: Cut | undefined;
  let plain: Cut | undefined;
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1];
    if (line.start > end) break;
    // A block keeps its first line, and a heading what follows it.
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

/** The last cut after a sentence and the last between words; in code only the latter. */
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

/** Links, pictures, URLs, and mentions, emoji and times in angle brackets. */
const unbreakable =
  /!?\[[^[\]]*\]\((?:[^()]|\([^()]*\))*\)|<[@#:!/a-z][^<>]{0,2000}>|https?:\/\/[^\s<>]+|:[a-z0-9_+-]{1,64}:/gi;

/** The parts of a line that must not be split, in order. */
function unbreakableSpans(line: string): Span[] {
  const spans = [...line.matchAll(unbreakable)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
  return [...spans, ...codeSpans(line)].sort((a, b) => a.start - b.start);
}

/** Code spans: from a run of backticks to the next run of the same length. */
function codeSpans(line: string): Span[] {
  const runs = [...line.matchAll(/`+/g)].map((match) => ({ at: match.index, length: match[0].length }));
  const closerOf = new Map<number, number>();
  const nextOfLength = new Map<number, number>();
  for (const [index, run] of [...runs.entries()].toReversed()) {
    const next = nextOfLength.get(run.length);
    if (next !== undefined) closerOf.set(index, next);
    nextOfLength.set(run.length, index);
  }
  const spans: Span[] = [];
  for (let index = 0; index < runs.length; index += 1) {
    const run = runs[index];
    const closer = runs[closerOf.get(index) ?? -1];
    if (run === undefined) continue;
    // A run without a closing run is not split either: its halves could open a span.
    spans.push({ start: run.at, end: (closer ?? run).at + run.length });
    if (closer !== undefined) index = closerOf.get(index) ?? index;
  }
  return spans;
}

function isInside(spans: readonly Span[], at: number): boolean {
  return spans.some((span) => span.start < at && at < span.end);
}

/** The fallback for one endless word: before a link that does not fit, else between two graphemes. */
function cutAnywhere(text: string, lines: readonly Line[], end: number): Cut {
  const line = lines.findLast((candidate) => candidate.start < end) ?? lines[0];
  if (line === undefined) throw new RangeError("no lines to cut");
  const content = text.slice(line.start, line.end);
  const limit = Math.min(end, line.end) - line.start;
  if (line.kind === "closer" && line.start > 0) return { at: line.start, line, isMidLine: false };
  const spans = line.kind === "code" ? [] : unbreakableSpans(content);
  const split = spans.find((span) => span.start < limit && limit < span.end && span.start > end / 4);
  let at = graphemeStart(content, split?.start ?? limit);
  // Avoids positions where the next message would begin with a block by accident.
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

/** The start of the grapheme that contains `at`, judged by 100 characters around it. */
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

/** At least one code point, even where `limit` is smaller. */
function firstCharacter(text: string, limit: number): number {
  const first = text.codePointAt(0) ?? 0;
  return Math.max(first > 0xffff ? 2 : 1, Math.min(limit, 1));
}
