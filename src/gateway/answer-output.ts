import type { ChatEvent } from "../core/gateway.ts";
import type { AttemptTimeouts } from "./attempt-timeouts.ts";
import type { CompletionChunk } from "./completion-chunk.ts";
import { createThoughtSplitter, type ThoughtPiece } from "./thoughts.ts";
import { type ImageLoader, imageNotice } from "./images.ts";
import { createInlineImages, type InlinePiece } from "./inline-images.ts";
import { translate } from "../words/translate.ts";

/** Turns the content of chunks into events. Text may hold images as Markdown or data URIs, which become events too. */
export interface AnswerOutput {
  /** Adds text. It is searched for images with the next {@link flush}: once a packet, not once a chunk. */
  addText(text: string): void;
  /** Adds everything of a chunk but its text. */
  addRest(chunk: CompletionChunk): Promise<void>;
  flush(): Promise<void>;
  /** Adds what was held back as the possible beginning of an image. Of an interrupted answer only the text. */
  end(how: "complete" | "interrupted"): Promise<void>;
  /** The events since the last call. */
  take(): ChatEvent[];
  /** Whether text or images went over their limits. What is over is dropped. */
  isOver(): boolean;
  addNotice(text: string): void;
  /** Whether there was neither text nor an image so far. */
  isEmpty(): boolean;
  totals(): {
    readonly textBytes: number;
    readonly images: number;
    readonly isRefusal: boolean;
    readonly hasThoughts: boolean;
  };
}

/** What {@link createAnswerOutput} works with. */
export interface AnswerOutputOptions {
  readonly images: ImageLoader;
  readonly timeouts: AttemptTimeouts;
  readonly maxImageChars: number;
  readonly maxTextChars: number;
  /** Whether an image that the text links to as Markdown is downloaded. */
  isTrustedLink(url: string): boolean;
}

/** Images in one answer. */
const maxImages = 10;

/** @see {@link AnswerOutput} */
export function createAnswerOutput(options: AnswerOutputOptions): AnswerOutput {
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
        // What was held back as a possible image was a thought as well.
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
    addText(text) {
      unsearched += text;
    },
    async addRest({ reasoning, refusal, images: urls }) {
      await flush();
      if (reasoning !== "") pushThought(reasoning);
      if (refusal !== "") {
        isRefusal = true;
        pushText(refusal);
      }
      for (const url of urls) await pushImage(url, "");
    },
    flush,
    async end(how) {
      await flush();
      await pushSplit(thoughts.end());
      const pieces = inline.end();
      await pushInline(how === "complete" ? pieces : pieces.filter(({ kind }) => kind === "text"));
    },
    take() {
      const taken = events;
      events = [];
      return taken;
    },
    isOver: () => isOver,
    addNotice(text) {
      events.push({ kind: "notice", text });
    },
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
