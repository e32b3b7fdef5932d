/** An open code block: what it takes to close it here and open it again in the next message. */
export interface Fence {
  /** The run of backticks or tildes that opened it. */
  readonly marker: string;
  /** First word after the marker: the language; empty where there is none or it is no sensible name. */
  readonly language: string;
  /** Quote marks its lines begin with, e.g. `> `; empty outside quotes. */
  readonly quote: string;
  /** Spaces its lines begin with because the block belongs to a list item. */
  readonly indent: number;
}

/** What a line is, as far as a cut before it is concerned. */
type LineKind = "blank" | "heading" | "item" | "opener" | "closer" | "code" | "text";

export interface Line {
  /** Offset of its first character. */
  readonly start: number;
  /** Offset past its last character, without the line break. */
  readonly end: number;
  readonly kind: LineKind;
  /** The block that is open before the line. */
  readonly fence: Fence | undefined;
  /** The block that is open after it. */
  readonly fenceAfter: Fence | undefined;
}

/** Longer runs open no block here: no one types them, and every message would have to repeat them. */
const opener = /^((?:[ \t]|>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))*)(`{3,40}(?!`)|~{3,40}(?!~))(.*)$/;
const quoteMarks = /^[ \t]*((?:>[ \t]?)+)/;
const heading = /^[ \t]{0,3}#{1,6}(?:[ \t]|$)/;
const item = /^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]/;

/** The quote marks at the start of a line, e.g. `> > `; empty where there are none. */
export function quoteOf(line: string): string {
  return quoteMarks.exec(line)?.[1] ?? "";
}

/**
 * The lines of `text`, beginning in the middle of one where `isMidLine`. A code block is opened by three or more
 * backticks or tildes at any depth of lists and quotes, and closed by as many or more of the same.
 */
export function scanLines(text: string, openFence: Fence | undefined, isMidLine: boolean): Line[] {
  const lines: Line[] = [];
  let fence = openFence;
  let start = 0;
  while (start < text.length) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    const content = text.slice(start, end);
    const isPart = isMidLine && start === 0;
    const kind = isPart ? (fence === undefined ? "text" : "code") : kindOf(content, fence);
    // A line without the quote's marks ends the quote, and the block in it.
    const before = kind === "code" || kind === "closer" ? fence : undefined;
    const fenceAfter = kind === "opener" ? parseOpener(content) : kind === "code" ? fence : undefined;
    lines.push({ start, end, kind, fence: before, fenceAfter });
    fence = fenceAfter;
    start = end + 1;
  }
  return lines;
}

function kindOf(line: string, fence: Fence | undefined): LineKind {
  if (fence !== undefined && (fence.quote === "" || quoteOf(line) !== "")) {
    return isCloser(line, fence) ? "closer" : "code";
  }
  if (line.trim() === "") return "blank";
  if (parseOpener(line) !== undefined) return "opener";
  if (heading.test(line)) return "heading";
  return item.test(line) ? "item" : "text";
}

/** The block that a line opens; `undefined`: it opens none. */
export function parseOpener(line: string): Fence | undefined {
  const [, prefix = "", marker, info = ""] = opener.exec(line) ?? [];
  // "```code```" in one line is code within a sentence.
  if (marker === undefined || (marker.startsWith("`") && info.includes("`"))) return undefined;
  const word = info.trim().split(/\s/, 1)[0] ?? "";
  const quote = quoteOf(line);
  return {
    marker,
    language: word.length <= 32 ? word : "",
    quote: quote === "" ? "" : `${quote.trimEnd()} `,
    indent: quote === "" ? prefix.length : 0,
  };
}

function isCloser(line: string, fence: Fence): boolean {
  const inner = fence.quote === "" ? line : line.slice(quoteMarks.exec(line)?.[0].length ?? 0);
  const run = inner.trim();
  return (
    run.length >= fence.marker.length &&
    run === fence.marker.charAt(0).repeat(run.length) &&
    inner.length - inner.trimStart().length <= fence.indent + 3
  );
}
