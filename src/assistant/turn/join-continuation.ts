import { readFenceLine, parseFence, type Fence } from "../../support/markdown-fences.ts";

/** Most characters of an answer that its continuation is asked to begin with. */
const maxAnchorChars = 80;
/** How far a continuation is looked at for words that it repeats, in characters. */
const lookChars = 240;
/** Repeated words elsewhere than in the middle of a line are taken for a repetition when they are so many. */
const minRepeatedWords = 5;

/** The last characters of an answer, from the beginning of a word, that its continuation is asked to repeat. */
export function anchorOf(before: string): string {
  const tail = before.slice(-maxAnchorChars);
  if (tail.length === before.length) return tail;
  const start = tail.search(/\s\S/);
  return start === -1 ? tail.replace(/^[\uDC00-\uDFFF]/, "") : tail.slice(start + 1);
}

/** Joins the pieces of a continuation to the answer before it, without a seam. */
export interface Joiner {
  /** The whole answer so far; `undefined` while it may still turn out that the piece repeats words. */
  add(piece: string): string | undefined;
  /** The whole answer, when nothing more comes. `undefined`: nothing came. */
  end(): string | undefined;
}

/**
 * What is repeated of the answer is left out, as is a code fence that is opened again. All else is joined as it is: models
 * put the whitespace that belongs between words in front of them.
 */
export function createJoiner(before: string): Joiner {
  let head = "";
  let joined: string | undefined;
  const join = (): string => (joined = before + head.slice(repeatedChars(before, head)));
  return {
    add(piece) {
      if (joined !== undefined) return (joined += piece);
      head += piece;
      return head.length < lookChars ? undefined : join();
    },
    end: () => joined ?? (head === "" ? undefined : join()),
  };
}

/** How many of the first characters of a continuation repeat the end of what it continues. */
function repeatedChars(before: string, head: string): number {
  const blank = head.length - head.trimStart().length;
  const starts = [0, ...(blank === 0 ? [] : [blank])];
  const opened = reopenedChars(before, head);
  if (opened > 0) starts.push(opened);
  for (const start of starts) {
    const overlap = overlapOf(before, head, start);
    if (overlap > 0) return start + overlap;
  }
  return opened;
}

/** Length of the line that opens the code block again which is open at the end of `before`. */
function reopenedChars(before: string, head: string): number {
  const line = /^\s*(\S.*)\n/.exec(head);
  const opened = line === null ? undefined : parseFence(line[1] ?? "");
  if (line === null || opened === undefined) return 0;
  // A bare fence on a line of its own closes the block.
  if (opened.language === "" && (before.endsWith("\n") || head.startsWith("\n"))) return 0;
  let fence: Fence | undefined;
  for (const each of before.split("\n")) ({ fence } = readFenceLine(each, fence));
  return fence === undefined ? 0 : line[0].length;
}

function overlapOf(before: string, head: string, start: number): number {
  const max = Math.min(before.length, head.length - start, lookChars);
  for (let chars = max; chars > 0; chars--) {
    const text = head.slice(start, start + chars);
    if (before.endsWith(text) && isRepetition(before, head.slice(start), chars)) return chars;
  }
  return 0;
}

/** Whether equal characters are a repetition, not a line of code or a list item that is like the one before. */
function isRepetition(before: string, rest: string, chars: number): boolean {
  const text = rest.slice(0, chars);
  if (chars >= anchorOf(before).length && /\w/.test(text)) return true;
  const isWholeWords =
    !isWithinWord(before.at(before.length - chars - 1), text.at(0)) &&
    !isWithinWord(text.at(-1), rest.at(chars));
  if (!isWholeWords) return false;
  // Joined as they are, two words would become one: "foxfox jumps".
  if (isWithinWord(before.at(-1), rest.at(0))) return true;
  return (text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0) >= minRepeatedWords;
}

function isWithinWord(one: string | undefined, next: string | undefined): boolean {
  return isWordChar(one) && isWordChar(next);
}

function isWordChar(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}_]/u.test(char);
}
