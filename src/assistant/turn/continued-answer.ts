import { earlierAnswerNotice } from "../../core/error-messages.ts";
import type { Usage } from "../../core/gateway.ts";
import type { OpenRedo } from "../../core/inbox.ts";
import { boundedReceipt, type Receipt } from "../../core/receipt.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { readFenceLine, parseFence, type Fence } from "../../support/markdown-fences.ts";
import { messageIds, textOf, estimateTokens, toEnding } from "./stored-messages.ts";
import { showPictures } from "./stored-pictures.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** The answer that a turn continues. `undefined`: it continues none. */
export async function findContinued(
  dependencies: Pick<TurnDependencies, "conversations">,
  turn: Pick<Turn, "conversationId" | "key" | "attempt" | "redo">,
): Promise<StoredMessage | undefined> {
  return turn.redo?.kind === "continue" ? await findEarlier(dependencies, turn) : undefined;
}

/** What a model is sent after the conversation, so that it writes the rest of its answer. Not stored. */
export function toContinuationRequest(answer: StoredMessage): StoredMessage[] {
  // The model has only thought: the question is asked again, with more room for the answer.
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

/** The words of an answer exactly as they came, with the whitespace at their end. */
export function textOfAnswer({ parts }: StoredMessage): string {
  return parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n") || textOf(parts);
}

/** What an answer and its continuation used together. */
export function addUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum = (a: number | undefined, b: number | undefined) => (a ?? 0) + (b ?? 0);
  const added = (name: "promptTokens" | "completionTokens" | "images" | "audioSeconds" | "costUsd") =>
    one[name] === undefined && other[name] === undefined ? {} : { [name]: sum(one[name], other[name]) };
  return {
    ...one,
    ...added("promptTokens"),
    ...added("completionTokens"),
    ...added("images"),
    ...added("audioSeconds"),
    ...added("costUsd"),
    isEstimated: one.isEstimated || other.isEstimated,
  };
}

/** How an answer and its continuation came about together. */
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

/** Whether a run that brings no answer leaves the earlier one as it is. An edited question has none. */
export function keepsEarlier(redo: OpenRedo | undefined): redo is OpenRedo {
  return redo !== undefined && redo.kind !== "edit";
}

/** Shows a stored answer as its reply's end. */
export async function showStored(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  turn: Pick<Turn, "conversationId" | "reply" | "lead">,
  stored: StoredMessage,
  notices: readonly string[] = stored.notices ?? [],
): Promise<void> {
  turn.reply.write({ lead: turn.lead, text: textOf(stored.parts), isWhole: true });
  await showEnd(dependencies, turn, stored, notices);
}

/** Shows what comes below the text of a stored answer: its pictures, notices and buttons. */
export async function showEnd(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  { conversationId, reply }: Pick<Turn, "conversationId" | "reply">,
  stored: StoredMessage,
  notices: readonly string[],
): Promise<void> {
  const unshown = await showPictures(dependencies, conversationId, stored.parts, reply);
  await reply.finish(toEnding(conversationId, stored, [...notices, ...unshown]));
}

/** The answer of the last attempt before this one, also one that broke off. `undefined`: none is stored. */
export async function findEarlier(
  { conversations }: Pick<TurnDependencies, "conversations">,
  { conversationId, key, attempt }: Pick<Turn, "conversationId" | "key" | "attempt">,
): Promise<StoredMessage | undefined> {
  const whole = await conversations.find(conversationId, messageIds.complete(key));
  for (let earlier = attempt - 1; earlier > (whole?.attempt ?? 0); earlier--) {
    const found = await conversations.find(conversationId, messageIds.assistant(key, earlier));
    if (found !== undefined) return found;
  }
  return whole;
}

/** Ends a run without an answer: shows the earlier one again, and why there is no new one. False: there is none. */
export async function showEarlier(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  turn: Pick<Turn, "conversationId" | "reply" | "lead" | "key" | "attempt">,
  why: string,
): Promise<boolean> {
  const stored = await findEarlier(dependencies, turn);
  if (stored === undefined) return false;
  const { notices = [], failure } = stored;
  const before = failure === undefined ? notices : [...notices, failure];
  await showStored(dependencies, turn, stored, [...before, earlierAnswerNotice(why)]);
  return true;
}

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
interface Joiner {
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
