/** An open code block with fences, with what is needed to close it here and reopen it elsewhere. */
export interface Fence {
  /** The backticks or tildes that opened it. */
  readonly marker: string;
  /** The first word after the marker. It is empty if there is none or it has more than 32 characters. */
  readonly language: string;
  /** The quote markers with which its lines begin, for example `> `. It is empty outside of quotes. */
  readonly quote: string;
  /** The number of columns by which its lines are indented, because it belongs to a list item. */
  readonly indent: number;
}

/** The role of one line in code blocks. */
interface FenceStep {
  /** `none` means that the line is outside of code blocks. */
  readonly role: "none" | "opener" | "code" | "closer";
  /** The block that is open after the line. */
  readonly fence: Fence | undefined;
}

/** Longer runs open no block here. Nobody types them, and every message would have to repeat them. */
const opener = /^((?:[ \t]|>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))*)(`{3,40}(?!`)|~{3,40}(?!~))(.*)$/;
/** Deeper nesting is no quote here, because every message would have to repeat its markers. */
const quoteMarkers = /^[ \t]{0,40}((?:>[ \t]?){1,12})(?!>)/;
const maxLanguageChars = 32;

/**
 * Reads the next line of a Markdown text after a line that left the block `open`. Three or more backticks or
 * tildes open a block, at any depth of lists and quotes. At least as many of the same characters close it,
 * and so does the end of its quote.
 * @see https://spec.commonmark.org/0.31.2/#fenced-code-blocks
 */
export function readFenceLine(line: string, open: Fence | undefined): FenceStep {
  if (open !== undefined && (open.quote === "" || quoteOf(line) !== "")) {
    return isCloser(line, open) ? { role: "closer", fence: undefined } : { role: "code", fence: open };
  }
  const fence = parseFence(line);
  return { role: fence === undefined ? "none" : "opener", fence };
}

/** The block that a line opens, if any. */
export function parseFence(line: string): Fence | undefined {
  if (!line.includes("```") && !line.includes("~~~")) return undefined;
  const [, prefix = "", marker, info = ""] = opener.exec(line) ?? [];
  // "```code```" in one line is a code span.
  if (marker === undefined || (marker.startsWith("`") && info.includes("`"))) return undefined;
  const word = info.trim().split(/\s/, 1)[0] ?? "";
  const quote = quoteOf(line);
  return {
    marker,
    language: word.length <= maxLanguageChars ? word : "",
    quote: quote === "" ? "" : `${quote.trimEnd()} `,
    indent: quote === "" ? prefix.length : 0,
  };
}

/** The quote markers at the start of a line, for example `> > `, or an empty text. */
export function quoteOf(line: string): string {
  return quoteMarkers.exec(line)?.[1] ?? "";
}

/** Closes a code block that is open at the end of a text, so that text below it is outside. */
export function closeFence(markdown: string): string {
  let fence: Fence | undefined;
  for (const line of markdown.split("\n")) ({ fence } = readFenceLine(line, fence));
  return fence === undefined ? markdown : `${markdown}\n${fence.quote}${fence.marker}`;
}

function isCloser(line: string, fence: Fence): boolean {
  const inner = fence.quote === "" ? line : line.slice(quoteMarkers.exec(line)?.[0].length ?? 0);
  const run = inner.trim();
  return (
    run.length >= fence.marker.length &&
    run === fence.marker.charAt(0).repeat(run.length) &&
    inner.length - inner.trimStart().length <= fence.indent + 3
  );
}
