import type { ChatEvent } from "../core/gateway.ts";
import { translate } from "../words/translate.ts";
import type { AttemptTimeouts } from "../wire/attempt.ts";
import type { CompletionChunk } from "../wire/completion-chunk.ts";
import { isVisible } from "../support/text.ts";
import { createThoughtSplitter, type ThoughtPiece } from "./answer-signs.ts";
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
  let writtenBytes = 0;
  let imageCount = 0;
  let isRefusal = false;
  let lost: string | undefined;
  let hasThoughts = false;
  const thoughts = createThoughtSplitter();
  let leftChars = options.maxTextChars;
  let isOver = false;
  let isSeen = false;
  /** The beginning of the text, as long as nobody could see anything of it. */
  let unseen = "";

  const pushText = (text: string) => {
    if (text.length > leftChars) isOver = true;
    const kept = isOver ? text.slice(0, leftChars) : text;
    leftChars -= kept.length;
    if (kept === "") return;
    writtenBytes += Buffer.byteLength(kept, "utf8");
    // A surrogate pair may arrive in two parts.
    isSeen ||= isVisible(unseen.slice(-1) + kept);
    unseen += kept;
    if (!isSeen) return;
    pushJoined(events, "text", unseen);
    unseen = "";
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
      // Models write paths as examples, too. One that is no picture of the gateway is text.
      if (!url.startsWith("/")) {
        lost = imageNotice(error);
        events.push({ kind: "notice", text: lost });
      }
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
    writtenBytes += Buffer.byteLength(text, "utf8");
    pushJoined(events, "reasoning", text);
  };
  const pushSplit = async (pieces: readonly ThoughtPiece[]) => {
    for (const piece of pieces) {
      if (piece.kind === "text") await pushInline(inline.push(piece.text));
      else if (piece.kind === "thought") pushThought(piece.text);
      else {
        // The text that was held back as a possible image was a thought as well.
        await pushInline(inline.end());
        isSeen = false;
        unseen = "";
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
    /** Whether there was neither an image nor text that people can see so far. */
    isEmpty: () => !isSeen && imageCount === 0,
    /** The notice of the last image that could not be loaded. */
    lost: () => lost,
    totals: () => ({ writtenBytes, images: imageCount, isRefusal, hasThoughts }),
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
