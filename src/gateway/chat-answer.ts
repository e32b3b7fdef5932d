import { ParleyError } from "../core/errors.ts";
import type { ChatEvent, FinishReason } from "../core/gateway.ts";
import { AttemptError } from "./attempt-error.ts";
import { type Ending, type Piece, readPiece, type ReportedUsage } from "./completion-chunk.ts";
import { createChunkReader } from "./chunk-reader.ts";
import { toAttemptError } from "./failures.ts";
import { createFrameReader, type Frame } from "./stream-frames.ts";
import { type ImageLoader, imageNotice } from "./images.ts";
import { createInlineImages, type InlinePiece } from "./inline-images.ts";
import type { Scrub } from "./scrub.ts";
import { type GatewayResponse, pageTitle, translateBreak } from "./transport.ts";
import { restMs, type Watch } from "./attempt-timeouts.ts";

/** What an answer came to, for the `finish` event. */
interface AnswerTotals {
  readonly reason: FinishReason;
  /** The model that says it answered. */
  readonly model: string | undefined;
  readonly usage: ReportedUsage | undefined;
  readonly textBytes: number;
  readonly images: number;
}

/** An answer under way. */
export interface ChatAnswer {
  /**
   * The next events, at least one; `undefined` after the last. All text of one network packet is one event.
   * @throws AttemptError before the first output; after it ParleyError `gateway-interrupted`; the caller's reason
   */
  next(): Promise<readonly ChatEvent[] | undefined>;
  /** What it came to. Only after `next` has answered `undefined`. */
  totals(): AnswerTotals;
  /** Cancels what is still under way at the gateway; harmless after the end. */
  close(): void;
}

export interface ChatAnswerOptions {
  readonly response: GatewayResponse;
  readonly model: string;
  readonly watch: Watch;
  readonly callerSignal: AbortSignal;
  readonly images: ImageLoader;
  readonly maxImageBytes: number;
  readonly scrub: Scrub;
}

/** Reads the body of a chat answer, streamed or whole, into events. */
export function createChatAnswer(options: ChatAnswerOptions): ChatAnswer {
  const { response, model, watch, callerSignal, images, scrub } = options;
  const maxImageChars = Math.ceil(options.maxImageBytes * 1.4) + 1024;
  const frames = createFrameReader(maxImageChars * 10 + 1024 * 1024);
  const inline = createInlineImages(maxImageChars);
  const chunks = createChunkReader(response.body);

  let state: "reading" | "ended" = "reading";
  /** Thrown by the next call, after what arrived before it. */
  let pending: { readonly error: unknown } | undefined;
  let ending: Ending | undefined;
  let isDone = false;
  let answeredBy: string | undefined;
  let usage: ReportedUsage | undefined;
  let hasOutput = false;
  let hasRefused = false;
  let textBytes = 0;
  let imageCount = 0;
  let values = 0;
  let unknownValues = 0;
  let isWhole = false;

  /** An error of this answer: a failed attempt before the first output, an interruption after it. */
  const broken = (error: AttemptError): Error => {
    if (!hasOutput) return error;
    const { failure } = error;
    return new ParleyError("gateway-interrupted", `the answer broke off: ${failure.message}`, {
      cause: failure,
      ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }),
      detail: { model, ...failure.detail, reason: failure.code },
    });
  };
  const failed = (info: { message: string; code?: string; type?: string; param?: string }) =>
    broken(
      toAttemptError(
        { operation: "chat", model, status: response.status, headers: response.headers, info },
        scrub,
      ),
    );
  const unreadable = (what: string, text: string) =>
    broken(
      new AttemptError(
        new ParleyError("gateway-bad-answer", `chat failed: ${what}`, {
          detail: { model, status: response.status, ...(text !== "" && { gatewayMessage: scrub(text) }) },
        }),
        "never",
      ),
    );

  const addText = (events: ChatEvent[], text: string) => {
    if (text === "") return;
    hasOutput = true;
    textBytes += Buffer.byteLength(text, "utf8");
    pushJoined(events, "text", text);
  };
  const addImage = async (events: ChatEvent[], url: string, source: string) => {
    watch.touch();
    watch.hold();
    try {
      const image = await images.load(url, watch.signal);
      if (image !== undefined) {
        hasOutput = true;
        imageCount++;
        events.push({ kind: "image", image });
      }
    } catch (error) {
      if (watch.signal.aborted) throw error;
      addText(events, source);
      events.push({ kind: "notice", text: imageNotice(error) });
    }
    watch.release();
  };
  const addInline = async (events: ChatEvent[], pieces: readonly InlinePiece[]) => {
    for (const piece of pieces) {
      if (piece.kind === "text") addText(events, piece.text);
      else if (piece.kind === "image") await addImage(events, piece.url, piece.source);
      else events.push({ kind: "notice", text: lostImageNotice(piece.why) });
    }
  };

  /** Text that is not yet searched for pictures: searched once a packet, not once an event. */
  let words = "";
  const addWords = async (events: ChatEvent[]) => {
    if (words === "") return;
    const parts = inline.push(words);
    words = "";
    await addInline(events, parts);
  };

  const readValue = (piece: Piece, isEvent: boolean) => {
    if (!piece.isKnown) {
      unknownValues++;
      return;
    }
    values++;
    isWhole = !isEvent && !piece.isDelta && values === 1;
    answeredBy ??= piece.model;
    if (piece.usage !== undefined) usage = { ...usage, ...piece.usage };
    if (piece.ending !== undefined) ending = piece.ending;
  };

  /** What is rarer than words; it stands behind the words of its own event. */
  const readRest = async (events: ChatEvent[], piece: Piece) => {
    await addWords(events);
    if (piece.reasoning !== "") pushJoined(events, "reasoning", piece.reasoning);
    if (piece.refusal !== "") {
      hasRefused = true;
      addText(events, piece.refusal);
    }
    for (const url of piece.images) await addImage(events, url, "");
  };

  const readFrames = async (events: ChatEvent[], list: readonly Frame[]) => {
    let isMeaningful = frames.hasGrown();
    const hadEnding = ending !== undefined;
    for (const frame of list) {
      if (frame.kind === "done") {
        isDone = true;
        break;
      }
      if (frame.kind !== "json") {
        await addWords(events);
        throw failureOf(frame);
      }
      const piece = readPiece(frame.value);
      if (piece.error !== undefined) {
        await addWords(events);
        throw failed(piece.error);
      }
      readValue(piece, frame.isEvent);
      words += piece.text;
      const hasMore = piece.reasoning !== "" || piece.refusal !== "" || piece.images.length > 0;
      if (hasMore) await readRest(events, piece);
      isMeaningful ||= hasMore || piece.text !== "";
    }
    await addWords(events);
    if (ending !== undefined && (isMeaningful || !hadEnding)) watch.finishSoon();
    else if (isMeaningful) watch.touch();
  };
  const failureOf = (frame: Exclude<Frame, { kind: "json" | "done" }>): Error => {
    switch (frame.kind) {
      case "failed":
        return failed({ message: frame.text, type: "server_error" });
      case "page":
        return unreadable("a web page instead of an answer", pageTitle(frame.text));
      case "too-large":
        return unreadable("the answer is too large", "");
      case "junk":
        return unreadable("the answer is no JSON", frame.text);
    }
  };

  /** The body is over, cleanly or not: decides whether the answer is. */
  const conclude = async (events: ChatEvent[]) => {
    await addInline(events, inline.end());
    if (ending?.reason === "failed")
      throw failed({ message: `the provider ended the answer with "${ending.word}"`, type: "server_error" });
    if (ending === undefined && !isDone && !isWhole) {
      if (values === 0 && unknownValues > 0) throw unreadable("the answer has another shape", "");
      const cut =
        values === 0
          ? new ParleyError("gateway-empty-answer", "chat failed: an empty body", { detail: { model } })
          : new ParleyError("gateway-interrupted", "the answer ended without a finish reason", {
              detail: { model },
            });
      throw hasOutput ? cut : new AttemptError(cut, "lost");
    }
    if (hasOutput) return;
    const word = ending?.word ?? "none";
    const isWithheld = ending?.reason === "filtered";
    throw new AttemptError(
      new ParleyError(
        isWithheld ? "gateway-refused" : "gateway-empty-answer",
        `chat failed: ${isWithheld ? "the answer was withheld" : "neither text nor image"} (${scrub(word, 40)})`,
        { detail: { model, finishReason: scrub(word, 40) } },
      ),
      "never",
    );
  };

  /** The answer ends with `error`; what arrived before it, in the same packet, is shown first. */
  const endWith = (events: ChatEvent[], error: unknown): readonly ChatEvent[] => {
    state = "ended";
    chunks.cancel();
    if (hasOutput) for (const piece of inline.end()) if (piece.kind === "text") addText(events, piece.text);
    if (events.every((event) => event.kind === "notice")) throw error;
    pending = { error };
    return events;
  };

  const readNext = async (): Promise<readonly ChatEvent[] | undefined> => {
    while (state === "reading") {
      const events: ChatEvent[] = [];
      let isOver: boolean;
      try {
        const chunk = await chunks.next();
        callerSignal.throwIfAborted();
        isOver = chunk === undefined;
        await readFrames(events, chunk === undefined ? frames.end() : frames.push(chunk));
      } catch (error) {
        if (callerSignal.aborted) throw callerSignal.reason;
        const isOwn = error instanceof AttemptError || error instanceof ParleyError;
        if (isOwn && !watch.signal.aborted) return endWith(events, error);
        // With the finish reason the answer was whole; what was lost is its usage at most.
        if (ending === undefined) {
          const cause = translateBreak(error, { operation: "chat", model, watch, callerSignal });
          return endWith(events, cause instanceof AttemptError ? broken(cause) : cause);
        }
        isOver = true;
      }
      if (isOver || isDone) {
        try {
          await conclude(events);
        } catch (error) {
          if (callerSignal.aborted) throw callerSignal.reason;
          return endWith(events, error);
        }
        state = "ended";
        // A server should end the body right behind [DONE]; one that does is worth keeping the connection to.
        chunks.leave(restMs);
      }
      if (events.length > 0) return events;
    }
    return undefined;
  };

  return {
    async next() {
      if (pending !== undefined) throw pending.error;
      callerSignal.throwIfAborted();
      watch.release();
      const events = await readNext();
      watch.hold();
      return events;
    },
    totals: () => ({
      reason: hasRefused ? "filtered" : toFinishReason(ending),
      model: answeredBy,
      usage,
      textBytes,
      images: imageCount,
    }),
    close() {
      if (state === "reading") chunks.cancel();
      state = "ended";
    },
  };
}

function toFinishReason(ending: Ending | undefined): FinishReason {
  if (ending === undefined) return "stop";
  return ending.reason === "failed" ? "other" : ending.reason;
}

/** Adds to the last event where that is of the same kind. */
function pushJoined(events: ChatEvent[], kind: "text" | "reasoning", text: string): void {
  const last = events.at(-1);
  if (last?.kind === kind) events[events.length - 1] = { kind, text: last.text + text };
  else events.push({ kind, text });
}

function lostImageNotice(why: "too-large" | "unfinished"): string {
  return why === "too-large"
    ? "A picture in the answer was too large and is left out."
    : "A picture in the answer arrived incomplete and is left out.";
}
