import type { ExcerptPart } from "../core/storage.ts";
import { nextPiece } from "../support/pieces.ts";

const maxWords = 8;
const beforeChars = 50;
const excerptChars = 200;
/** How many characters are folded at once. One alone can become eighteen. */
const pieceChars = 8000;

/** Searches texts for words. */
export interface TextSearch {
  /** Whether there is nothing to search for. */
  readonly isEmpty: boolean;
  /**
   * A line of the text around the first of the words, with all words marked, or `undefined` if the text does
   * not have all words. Others have their turns while a long text is searched.
   */
  find(text: string): Promise<readonly ExcerptPart[] | undefined>;
}

/** Searches for all words of a text, at most eight, without regard to case and accents. */
export function createTextSearch(text: string): TextSearch {
  const words = [...new Set(fold(text).split(/\s+/))].filter((word) => word !== "").slice(0, maxWords);
  const keptChars = Math.max(0, ...words.map((word) => word.length - 1));
  return {
    isEmpty: words.length === 0,
    async find(searched) {
      const missing = new Set(words);
      let first: number | undefined;
      /** The end of what is folded already, where a word may begin. */
      let kept = "";
      for (let from = 0; from < searched.length && missing.size > 0;) {
        await nextPiece();
        const piece = pieceAt(searched, from);
        const folded = kept + fold(piece);
        const places = [...missing].flatMap((word) => {
          const at = folded.indexOf(word);
          if (at !== -1) missing.delete(word);
          return at === -1 ? [] : [at - kept.length];
        });
        if (places.length > 0) first ??= placeIn(piece, from, Math.min(...places));
        kept = keptChars === 0 ? "" : folded.slice(-keptChars);
        from += piece.length;
      }
      return missing.size > 0 || first === undefined ? undefined : toExcerpt(searched, first, words);
    },
  };
}

function toExcerpt(text: string, at: number, words: readonly string[]): ExcerptPart[] {
  const from = wordStart(text, at - beforeChars);
  const to = Math.min(text.length, from + excerptChars);
  const line = text.slice(from, to).replaceAll(/\s+/g, " ").trim();
  return mark(
    `${from > 0 ? "… " : ""}${line.replace(/[\uD800-\uDBFF]$/, "")}${to < text.length ? " …" : ""}`,
    words,
  );
}

/** The characters from a position on that are folded at once. It does not split one. */
function pieceAt(text: string, from: number): string {
  const piece = text.slice(from, from + pieceChars);
  const isSplit = from + pieceChars < text.length && /[\uD800-\uDBFF]$/.test(piece);
  return isSplit ? piece.slice(0, -1) : piece;
}

/** The position in the text of a position in a folded piece of it, which may begin before the piece. */
function placeIn(piece: string, from: number, foldedAt: number): number {
  return foldedAt < 0 ? Math.max(0, from + foldedAt) : from + toOriginal(piece, foldedAt);
}

/** Removes accents and capitals. What is folded in pieces has the same result as the whole. */
function fold(text: string): string {
  // oxlint-disable-next-line no-control-regex -- the whole range of ASCII
  if (/^[\u0000-\u007F]*$/.test(text)) return text.toLowerCase();
  return (
    text
      .normalize("NFKD")
      .replaceAll(/\p{M}+/gu, "")
      .toLowerCase()
      // A sigma is written differently at the end of a word.
      .replaceAll("ς", "σ")
  );
}

/** The position in the text of a position in its folded form. */
function toOriginal(text: string, position: number): number {
  let at = 0;
  let foldedAt = 0;
  for (const char of text) {
    if (foldedAt >= position) break;
    foldedAt += fold(char).length;
    at += char.length;
  }
  return at;
}

/** The beginning of the word at a position, unless it is far away. */
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
