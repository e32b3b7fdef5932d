import type { ExcerptPart } from "../core/conversation-lists.ts";

const maxWords = 8;
const beforeChars = 50;
const excerptChars = 200;

/** What a text is searched for. */
export interface TextSearch {
  /** There is nothing to look for. */
  readonly isEmpty: boolean;
  /** Whether the text has all words. */
  matches(text: string): boolean;
  /** A line around the first of the words that the text has, with all of them marked. */
  excerpt(text: string): readonly ExcerptPart[];
}

/** Looks for all words of a text, at most eight. Upper and lower case and accents do not count. */
export function createTextSearch(text: string): TextSearch {
  const words = [...new Set(fold(text).split(/\s+/))].filter((word) => word !== "").slice(0, maxWords);
  return {
    isEmpty: words.length === 0,
    matches(searched) {
      const folded = fold(searched);
      return words.every((word) => folded.includes(word));
    },
    excerpt(searched) {
      const folded = fold(searched);
      const places = words.map((word) => folded.indexOf(word)).filter((at) => at !== -1);
      const at = toOriginal(searched, folded, Math.min(...places, folded.length));
      const from = wordStart(searched, at - beforeChars);
      const to = Math.min(searched.length, from + excerptChars);
      const line = searched.slice(from, to).replaceAll(/\s+/g, " ").trim();
      return mark(
        `${from > 0 ? "… " : ""}${line.replace(/[\uD800-\uDBFF]$/, "")}${to < searched.length ? " …" : ""}`,
        words,
      );
    },
  };
}

/** Without accents and capitals. */
function fold(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the whole range of ASCII
  if (/^[\u0000-\u007F]*$/.test(text)) return text.toLowerCase();
  return text
    .normalize("NFKD")
    .replaceAll(/\p{M}+/gu, "")
    .toLowerCase();
}

/** The position in the text that a position in its folded form came from. */
function toOriginal(text: string, folded: string, position: number): number {
  if (folded.length === text.length) return position;
  let at = 0;
  let foldedAt = 0;
  for (const char of text) {
    if (foldedAt >= position) break;
    foldedAt += fold(char).length;
    at += char.length;
  }
  return at;
}

/** The beginning of the word at a position, unless that is far. */
function wordStart(text: string, at: number): number {
  if (at <= 0) return 0;
  const space = text.slice(at, at + beforeChars - 1).search(/\s/);
  return at + (space === -1 ? 0 : space + 1);
}

function mark(line: string, words: readonly string[]): ExcerptPart[] {
  const chars = Array.from(line);
  const folded = chars.map((char) => fold(char));
  const starts = folded.map(() => 0);
  let joined = "";
  for (const [index, each] of folded.entries()) {
    starts[index] = joined.length;
    joined += each;
  }
  const isMarked = chars.map(() => false);
  for (const word of words) {
    for (let at = joined.indexOf(word); at !== -1; at = joined.indexOf(word, at + word.length)) {
      for (const [index, start] of starts.entries())
        if (start < at + word.length && start + (folded[index] ?? "").length > at) isMarked[index] = true;
    }
  }
  const parts: { text: string; isMatch: boolean }[] = [];
  for (const [index, char] of chars.entries()) {
    const isMatch = isMarked[index] === true;
    const last = parts.at(-1);
    if (last?.isMatch === isMatch) last.text += char;
    else parts.push({ text: char, isMatch });
  }
  return parts;
}
