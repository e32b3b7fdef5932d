import type { Usage } from "../../core/gateway.ts";
import type { Receipt } from "../../core/receipt.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { readFenceLine, parseFence, type Fence } from "../../support/markdown-fences.ts";
import { textOf, estimateTokens } from "./stored-messages.ts";
import { boundedReceipt } from "./turn.ts";

/** What a model is sent after the conversation so that it continues its answer. It is not stored. */
export function toContinuationRequest(answer: StoredMessage): StoredMessage[] {
  // The model has only thought so far. The question is asked again, with more tokens for the answer.
  if (textOfAnswer(answer) === "") return [];
  const text = [
    "Your last answer broke off before its end. Write the rest of it.",
    "Begin by repeating these last characters of it exactly as they are, then go on directly, without any comment, and without opening a code block again that is open:",
    anchorOf(textOfAnswer(answer)),
  ].join("\n\n");
  const request: StoredMessage = {
    id: `${answer.id}/continue`,
    role: "user",
    turnKey: answer.turnKey,
    parts: [{ kind: "text", text }],
    createdAt: answer.createdAt,
    estimatedTokens: estimateTokens(text),
  };
  return [answer, request];
}

/** The words of an answer exactly as they arrived, including the white space at the end. */
export function textOfAnswer({ parts }: StoredMessage): string {
  return parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n") || textOf(parts);
}

const counted = ["promptTokens", "completionTokens", "images", "audioSeconds", "costUsd"] as const;

/** The usage of an answer and its continuation together. */
export function addUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  let sum: Usage = { ...other, ...one, isEstimated: one.isEstimated || other.isEstimated };
  for (const name of counted)
    if (one[name] !== undefined || other[name] !== undefined)
      sum = { ...sum, [name]: (one[name] ?? 0) + (other[name] ?? 0) };
  return sum;
}

/** The receipt of an answer and its continuation together. */
export function addReceipt(one: Receipt | undefined, other: Receipt | undefined): Receipt | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return boundedReceipt({
    ...other,
    ...(one.firstTextMs === undefined ? {} : { firstTextMs: one.firstTextMs }),
    ...(one.files === undefined ? {} : { files: one.files }),
    calls: [...one.calls, ...other.calls],
    totalMs: one.totalMs + other.totalMs,
  });
}

/** How many of an answer's last characters its continuation is asked to repeat. */
const maxAnchorChars = 80;
/** How many characters of a continuation are searched for repeated words. */
const lookChars = 240;
/** Outside of the middle of a line, only this many equal words count as a repetition. */
const minRepeatedWords = 5;

/** The end of an answer, from the beginning of a word, which its continuation is asked to repeat. */
export function anchorOf(before: string): string {
  const tail = before.slice(-maxAnchorChars);
  if (tail.length === before.length) return tail;
  const start = tail.search(/\s\S/);
  return start === -1 ? tail.replace(/^[\uDC00-\uDFFF]/, "") : tail.slice(start + 1);
}

/** Joins the parts of a continuation to the answer without a seam. */
interface Joiner {
  /** Returns the whole answer so far, or `undefined` while the part may still turn out to repeat words. */
  add(piece: string): string | undefined;
  /** Returns the whole answer at the end, or `undefined` if nothing came. */
  end(): string | undefined;
}

/**
 * Leaves out what repeats the answer, and a code fence that opens again. Everything else is joined as it is,
 * because models put the white space between words in front of them.
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

/** How many of the first characters of a continuation repeat the end of the answer. */
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

/** The length of the line that opens the code block again that is open at the end of `before`. */
function reopenedChars(before: string, head: string): number {
  const line = /^\s*(\S.*)\n/.exec(head);
  const opened = line === null ? undefined : parseFence(line[1] ?? "");
  if (line === null || opened === undefined) return 0;
  // A bare fence on its own line closes the block.
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

/** Whether equal characters are a repetition, and not a line of code or a list item like the one before. */
function isRepetition(before: string, rest: string, chars: number): boolean {
  const text = rest.slice(0, chars);
  if (chars >= anchorOf(before).length && /\w/.test(text)) return true;
  const isWholeWords =
    !isWithinWord(before.at(before.length - chars - 1), text.at(0)) &&
    !isWithinWord(text.at(-1), rest.at(chars));
  if (!isWholeWords) return false;
  // Joining them as they are would make one word of two, such as "foxfox jumps".
  if (isWithinWord(before.at(-1), rest.at(0))) return true;
  return (text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0) >= minRepeatedWords;
}

function isWithinWord(one: string | undefined, next: string | undefined): boolean {
  return isWordChar(one) && isWordChar(next);
}

function isWordChar(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}_]/u.test(char);
}
