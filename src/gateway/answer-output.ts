import type { ChatEvent } from "../core/gateway.ts";
import { translate } from "../words/translate.ts";
import type { AttemptTimeouts } from "../wire/attempt.ts";
import type { CompletionChunk } from "../wire/completion-chunk.ts";
import { type ImageLoader, imageNotice, createInlineImages, type InlinePiece } from "./images.ts";

interface AnswerOutputOptions {
  readonly images: ImageLoader;
  readonly timeouts: AttemptTimeouts;
  readonly maxImageChars: number;
  readonly maxTextChars: number;
  /** Whether an image that the text links to as Markdown is downloaded. */
  isTrustedLink(url: string): boolean;
}

/** The most images in one answer. */
const maxImages = 10;

/** Turns chunks into events. Images in the text, as Markdown or data URIs, become events too. */
export function createAnswerOutput(options: AnswerOutputOptions) {
  const { images, timeouts } = options;
  const inline = createInlineImages(options.maxImageChars, (url) => options.isTrustedLink(url));
  let events: ChatEvent[] = [];
  let unsearched = "";
  let textBytes = 0;
  let imageCount = 0;
  let isRefusal = false;
  let hasThoughts = false;
  const thoughts = createThoughtSplitter();
  let leftChars = options.maxTextChars;
  let isOver = false;

  const pushText = (text: string) => {
    if (text.length > leftChars) isOver = true;
    const kept = isOver ? text.slice(0, leftChars) : text;
    leftChars -= kept.length;
    if (kept === "") return;
    textBytes += Buffer.byteLength(kept, "utf8");
    pushJoined(events, "text", kept);
  };
  const pushImage = async (url: string, source: string) => {
    if (isOver || imageCount >= maxImages) {
      isOver = true;
      return;
    }
    timeouts.progress();
    timeouts.pause();
    try {
      const image = await images.load(url, timeouts.signal, source === "" ? "field" : "markdown");
      if (image !== undefined) {
        imageCount++;
        events.push({ kind: "image", image });
      }
    } catch (error) {
      if (timeouts.signal.aborted) throw error;
      pushText(source);
      events.push({ kind: "notice", text: imageNotice(error) });
    }
    timeouts.resume();
  };
  const pushInline = async (pieces: readonly InlinePiece[]) => {
    for (const piece of pieces) {
      if (piece.kind === "text") pushText(piece.text);
      else if (piece.kind === "image") await pushImage(piece.url, piece.source);
      else events.push({ kind: "notice", text: lostImageNotice(piece.why) });
    }
  };
  const pushThought = (text: string) => {
    hasThoughts = true;
    pushJoined(events, "reasoning", text);
  };
  const pushSplit = async (pieces: readonly ThoughtPiece[]) => {
    for (const piece of pieces) {
      if (piece.kind === "text") await pushInline(inline.push(piece.text));
      else if (piece.kind === "thought") pushThought(piece.text);
      else {
        // The text that was held back as a possible image was a thought as well.
        await pushInline(inline.end());
        textBytes = 0;
        events.push({ kind: "retract" });
      }
    }
  };
  const flush = async () => {
    if (unsearched === "") return;
    const pieces = thoughts.push(unsearched);
    unsearched = "";
    await pushSplit(pieces);
  };

  return {
    /** Adds text. The next flush searches it for images, once a packet and not once a chunk. */
    addText(text: string): void {
      unsearched += text;
    },
    /** Adds everything of a chunk but its text. */
    async addRest({ reasoning, refusal, images: urls }: CompletionChunk): Promise<void> {
      await flush();
      if (reasoning !== "") pushThought(reasoning);
      if (refusal !== "") {
        isRefusal = true;
        pushText(refusal);
      }
      for (const url of urls) await pushImage(url, "");
    },
    flush,
    /** Adds text that was held back as a possible image. An interrupted answer gets only the text. */
    async end(how: "complete" | "interrupted"): Promise<void> {
      await flush();
      await pushSplit(thoughts.end());
      const pieces = inline.end();
      await pushInline(how === "complete" ? pieces : pieces.filter(({ kind }) => kind === "text"));
    },
    /** Returns the events since the last call. */
    take(): ChatEvent[] {
      const taken = events;
      events = [];
      return taken;
    },
    /** Whether text or images went over their limits. The excess is dropped. */
    isOver: () => isOver,
    addNotice(text: string): void {
      events.push({ kind: "notice", text });
    },
    /** Whether there was neither text nor an image so far. */
    isEmpty: () => textBytes === 0 && imageCount === 0,
    totals: () => ({ textBytes, images: imageCount, isRefusal, hasThoughts }),
  };
}

/** Adds to the last event when that is of the same kind. */
function pushJoined(events: ChatEvent[], kind: "text" | "reasoning", text: string): void {
  const last = events.at(-1);
  if (last?.kind === kind) events[events.length - 1] = { kind, text: last.text + text };
  else events.push({ kind, text });
}

function lostImageNotice(why: "too-large" | "unfinished"): string {
  return why === "too-large" ? translate("lost-picture.too-large") : translate("lost-picture.incomplete");
}

/** A piece of an answer's text. `retract` means that the text before it was thoughts. */
type ThoughtPiece =
  | { readonly kind: "text" | "thought"; readonly text: string }
  | { readonly kind: "retract" };

/**
 * In `begin` there were only blanks so far, and in `signed` the text is between two signs. In `answer` a
 * closing sign may still come, and in `plain` nothing is searched any more.
 */
type SplitterState = "begin" | "signed" | "answer" | "plain";

/**
 * The signs between which models write their thoughts where their server does not remove them: DeepSeek-R1,
 * QwQ, Qwen3 and MiniMax-M1; prompted chains of thought; Gemma; Seed-OSS; Kimi; Magistral; gpt-oss.
 * @see docs/gateway.md
 */
const signs: readonly (readonly [opening: string, closing: string, kind?: "text"])[] = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<seed:think>", "</seed:think>"],
  ["◁think▷", "◁/think▷"],
  ["[THINK]", "[/THINK]"],
  ["<|channel|>analysis<|message|>", "<|end|>"],
  // People read what it is about to do: https://github.com/openai/harmony/blob/main/docs/format.md#preambles
  ["<|channel|>commentary<|message|>", "<|end|>", "text"],
];
/** gpt-oss writes these before its answer, after its thoughts or without any. */
const answerSigns: readonly string[] = ["<|start|>assistant", "<|channel|>final<|message|>"];
const openings = [...signs.map(([opening]) => opening), ...answerSigns];
const closings = signs.map(([, closing]) => closing);
/** More blanks than this are the beginning of an answer. */
const maxHeldBlanks = 4096;
/** Matches what matters for a closing sign without an opening one: lines, code, and the sign itself. */
const landmark = /\n|`+|<\/(?:think(?:ing)?|thought|seed:think)>|◁\/think▷|\[\/THINK\]/g;

/**
 * Separates the thoughts that a model writes into its text from its answer. Opening signs count only where
 * the answer would begin, since later ones are text about such signs. Some templates write the opening sign
 * into the prompt, so that only the closing one arrives. Then the text so far is retracted, unless the sign
 * is in code. Time and memory are linear in the text.
 */
function createThoughtSplitter() {
  let state: SplitterState = "begin";
  let held = "";
  let closing = "";
  let signed: "text" | "thought" = "thought";
  let hasSigns = false;
  let hasText = false;
  /** The blanks between a text that has ended and the next one. */
  let gap = "";
  let isInFence = false;
  let isInCode = false;
  let isLineStart = true;
  let pieces: ThoughtPiece[] = [];

  const add = (kind: "text" | "thought", text: string): void => {
    if (text === "") return;
    if (kind === "thought") return void pieces.push({ kind, text });
    hasText = true;
    pieces.push({ kind, text: gap + text });
    gap = "";
  };

  /** Each step takes from `held` what it can decide on. It returns whether another step may follow. */
  const steps: Readonly<Record<SplitterState, (isEnd: boolean) => boolean>> = {
    begin(isEnd) {
      const text = held.trimStart();
      // Blanks before an opening sign are dropped with it, but not those before an answer without one.
      if (text === "" && held.length <= maxHeldBlanks && !isEnd) return false;
      const sign = signs.find(([opening]) => text.startsWith(opening));
      if (sign !== undefined) {
        held = text.slice(sign[0].length);
        [, closing, signed = "thought"] = sign;
        hasSigns = true;
        state = "signed";
        return true;
      }
      const answerSign = answerSigns.find((sign) => text.startsWith(sign));
      if (answerSign !== undefined) {
        held = text.slice(answerSign.length);
        return true;
      }
      if (!isEnd && text !== "" && openings.some((opening) => opening.startsWith(text))) return false;
      if (hasSigns) held = text;
      state = hasSigns ? "plain" : "answer";
      return true;
    },
    signed(isEnd) {
      const at = held.indexOf(closing);
      if (at !== -1) {
        add(signed, held.slice(0, at));
        if (signed === "text") gap = "\n\n";
        held = held.slice(at + closing.length);
        state = "begin";
        return true;
      }
      const kept = isEnd ? 0 : heldBack(held, [closing]);
      add(signed, held.slice(0, held.length - kept));
      held = held.slice(held.length - kept);
      return false;
    },
    answer(isEnd) {
      const kept = isEnd ? 0 : heldBack(held, closings) || trailingTicks(held);
      const text = held.slice(0, held.length - kept);
      let end = 0;
      for (const { 0: found, index } of text.matchAll(landmark)) {
        if (/\S/.test(text.slice(end, index))) isLineStart = false;
        end = index + found.length;
        if (found === "\n") {
          isLineStart = true;
          isInCode = false;
        } else if (found.startsWith("`")) {
          if (isLineStart && found.length >= 3) isInFence = !isInFence;
          else isInCode = !isInCode;
          isLineStart = false;
        } else if (!isInFence && !isInCode) {
          if (hasText) pieces.push({ kind: "retract" });
          add("thought", text.slice(0, index));
          held = held.slice(end);
          hasSigns = true;
          state = "begin";
          return true;
        }
      }
      if (/\S/.test(text.slice(end))) isLineStart = false;
      add("text", text);
      held = held.slice(text.length);
      return false;
    },
    plain() {
      add("text", held);
      held = "";
      return false;
    },
  };

  const run = (isEnd: boolean): ThoughtPiece[] => {
    while (steps[state](isEnd));
    const taken = pieces;
    pieces = [];
    return taken;
  };

  return {
    push(text: string): ThoughtPiece[] {
      held += text;
      return run(false);
    },
    /** Returns what was held back as the possible beginning of a tag. */
    end: () => run(true),
  };
}

/** Returns how many characters at the end of a text may be the beginning of a sign. */
function heldBack(text: string, wanted: readonly string[]): number {
  for (let length = Math.min(text.length, 50); length > 0; length--) {
    const tail = text.slice(text.length - length);
    if (wanted.some((sign) => sign.length > length && sign.startsWith(tail))) return length;
  }
  return 0;
}

/** Returns the backticks at the end, which may become more with the next packet. */
function trailingTicks(text: string): number {
  let length = 0;
  while (length < 3 && text.endsWith("`".repeat(length + 1))) length++;
  return length;
}
