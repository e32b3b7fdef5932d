import { readFenceLine, type Fence } from "../../support/markdown-fences.ts";

/** What a line is, as far as a cut before it is concerned. */
type LineKind = "blank" | "heading" | "item" | "opener" | "closer" | "code" | "rule" | "text";

/** One line of a Markdown text. */
export interface Line {
  /** Offset of its first character. */
  readonly start: number;
  /** Offset past its last character, without the line break. */
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
 * The lines of `text`, given the code block that is open before it.
 * @param isMidLine the text begins in the middle of a line, which then neither opens nor closes a block
 */
export function scanLines(text: string, openFence: Fence | undefined, isMidLine: boolean): Line[] {
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
