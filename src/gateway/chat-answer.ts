import { ParleyError } from "../core/errors.ts";
import type { ChatEvent, FinishReason } from "../core/gateway.ts";
import { createAnswerFailures, toInterruption } from "./answer-failures.ts";
import { createAnswerOutput } from "./answer-output.ts";
import { advance, emptyProgress, finishReasonOf, verdictOf } from "./answer-progress.ts";
import { AttemptError } from "./attempt-error.ts";
import { type AttemptTimeouts, endGraceMs } from "./attempt-timeouts.ts";
import { createChunkReader } from "./chunk-reader.ts";
import { createCompletionReader, type ReportedUsage } from "./completion-chunk.ts";
import type { ImageLoader } from "./images.ts";
import { answerLimitsOf, createAnswerMeter } from "../support/answer-limits.ts";
import type { Scrub } from "./scrub.ts";
import { createFrameReader, type Frame } from "./stream-frames.ts";
import { type GatewayResponse, translateFailure } from "./transport.ts";
import { translate } from "../words/translate.ts";

/** Totals of a complete answer, for the `finish` event. */
interface AnswerTotals {
  readonly reason: FinishReason;
  /** The model named by the answer. */
  readonly model: string | undefined;
  readonly usage: ReportedUsage | undefined;
  readonly textBytes: number;
  readonly images: number;
}

/**
 * After the first text, packets are taken together so long, in milliseconds: 25 times a second is more often than a
 * platform shows a change, and each time costs the same however much arrived.
 */
const gatherMs = 40;

/** An answer that is being received. */
export interface ChatAnswer {
  /**
   * The next events, at least one; `undefined` after the last. Text that arrives together is one event; after the first text, that of 40 ms.
   * @throws AttemptError before the first output; after it ParleyError `gateway-interrupted`; the caller's reason
   */
  next(): Promise<readonly ChatEvent[] | undefined>;
  /** Only after `next` has returned `undefined`. */
  totals(): AnswerTotals;
  /** Cancels the request if it is still running. */
  close(): void;
}

/** The response to read, and the call that it belongs to. */
export interface ChatAnswerOptions {
  readonly response: GatewayResponse;
  readonly model: string;
  readonly timeouts: AttemptTimeouts;
  readonly callerSignal: AbortSignal;
  readonly images: ImageLoader;
  readonly maxImageBytes: number;
  /** Whether an image that the text links to as Markdown is downloaded. */
  isTrustedLink(url: string): boolean;
  /** The limit that was requested. An answer far beyond it is cut. */
  readonly maxTokens: number;
  readonly scrub: Scrub;
}

/** `failed`: the error is thrown by the next call, after the events that arrived before it. */
type ReaderState =
  | { readonly kind: "reading" | "ended" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Reads the body of a chat answer, streamed or not, into events. */
export function createChatAnswer(options: ChatAnswerOptions): ChatAnswer {
  const { response, model, timeouts, callerSignal, images, scrub } = options;
  const maxImageChars = Math.ceil(options.maxImageBytes * 1.4) + 1024;
  const limits = answerLimitsOf(options.maxTokens, maxImageChars * 3);
  const meter = createAnswerMeter(limits);
  const frames = createFrameReader(maxImageChars * 2 + limits.textChars * 2 + 1024 * 1024);
  const chunks = createChunkReader(response.body);
  const output = createAnswerOutput({
    images,
    timeouts,
    maxImageChars,
    maxTextChars: limits.textChars,
    isTrustedLink: (url) => options.isTrustedLink(url),
  });
  const failures = createAnswerFailures(response, model, scrub);
  const completion = createCompletionReader();
  let state: ReaderState = { kind: "reading" };
  let progress = emptyProgress;

  const isOver = () => output.isOver() || meter.exceeded() !== undefined;

  const readFrame = async (frame: Exclude<Frame, { kind: "done" }>): Promise<boolean> => {
    if (frame.kind !== "json") {
      await output.flush();
      throw failures.ofFrame(frame);
    }
    const chunk = completion.read(frame.value);
    if (chunk.error !== undefined) {
      await output.flush();
      throw failures.reported(chunk.error);
    }
    progress = advance(progress, { kind: "chunk", chunk, isEvent: frame.isEvent });
    output.addText(chunk.text);
    const hasMore = chunk.reasoning !== "" || chunk.refusal !== "" || chunk.images.length > 0;
    meter.add("aside", chunk.reasoning.length + chunk.refusal.length);
    if (hasMore) await output.addRest(chunk);
    const isMeaningful = hasMore || chunk.text !== "";
    if (!isMeaningful) meter.add("silent", 1);
    return isMeaningful;
  };

  const readFrames = async (list: readonly Frame[]) => {
    let isMeaningful = frames.hasGrown();
    const hadEnding = progress.ending !== undefined;
    for (const frame of list) {
      if (frame.kind === "done") {
        progress = advance(progress, frame);
        break;
      }
      if (await readFrame(frame)) isMeaningful = true;
      if (isOver()) break;
    }
    await output.flush();
    // A reason to finish that comes with thoughts alone does not end the wait for the answer.
    const isEnding = progress.ending !== undefined && !output.isEmpty();
    if (isEnding && (isMeaningful || !hadEnding)) timeouts.expectEnd();
    else if (isMeaningful) timeouts.progress();
  };

  /** Reads one packet. Returns false at the end of the body. */
  const readPacket = async (): Promise<boolean> => {
    try {
      const packet = await chunks.next(output.isEmpty() ? 0 : gatherMs);
      callerSignal.throwIfAborted();
      meter.add("wire", packet?.length ?? 0);
      await readFrames(packet === undefined ? frames.end() : frames.push(packet));
      return packet !== undefined;
    } catch (error) {
      if (callerSignal.aborted) throw callerSignal.reason;
      const isOwn = error instanceof AttemptError || error instanceof ParleyError;
      if (isOwn && !timeouts.signal.aborted) throw error;
      // After the finish reason the answer is complete: at most its usage is lost.
      if (progress.ending !== undefined) return false;
      throw translateFailure(error, { operation: "chat", model, timeouts, callerSignal });
    }
  };

  /** A limit that was reached while the model thought is no failure: a larger one brings the answer. */
  const endWithoutContent = () => {
    const isSpentOnThoughts = progress.ending?.reason === "length" && output.totals().hasThoughts;
    if (!isSpentOnThoughts) throw failures.withoutContent(progress.ending);
    const used = progress.usage?.completionTokens;
    output.addNotice(
      used === undefined
        ? translate("answer.all-thought")
        : translate("answer.all-thought.counted", { used }),
    );
  };

  /** Decides at the end of the body whether the answer is complete. */
  const complete = async () => {
    await output.end("complete");
    const verdict = verdictOf(progress);
    if (verdict !== "complete") throw failures.ofVerdict(verdict, progress.ending);
    if (output.isEmpty()) endWithoutContent();
    state = { kind: "ended" };
    // Servers usually end the body right after [DONE]; the connection can then be reused.
    chunks.leave(endGraceMs);
  };

  /** Ends an answer that is far beyond what was requested: the model is not paid for more of it, nor memory filled. */
  const cut = async () => {
    chunks.cancel();
    if (output.isEmpty()) throw failures.ofFrame({ kind: "too-large" });
    await output.end("interrupted");
    output.addNotice(translate("answer.far-too-long", { max: options.maxTokens }));
    progress = { ...progress, phase: "finished", ending: { reason: "length", word: "length" } };
    state = { kind: "ended" };
  };

  /** Ends the answer with an error. The events that arrived before it are returned first. */
  const fail = async (cause: unknown): Promise<readonly ChatEvent[]> => {
    const isInterruption = cause instanceof AttemptError && !output.isEmpty();
    const error = isInterruption ? toInterruption(cause, model) : cause;
    state = { kind: "failed", error };
    chunks.cancel();
    if (!output.isEmpty()) await output.end("interrupted");
    const events = output.take();
    if (events.every((event) => event.kind === "notice")) throw error;
    return events;
  };

  const readNext = async (): Promise<readonly ChatEvent[] | undefined> => {
    while (state.kind === "reading") {
      try {
        const hasMore = await readPacket();
        if (isOver()) await cut();
        else if (!hasMore || progress.phase === "done") await complete();
      } catch (error) {
        if (callerSignal.aborted) throw callerSignal.reason;
        return fail(error);
      }
      const events = output.take();
      if (events.length > 0) return events;
    }
    return undefined;
  };

  return {
    async next() {
      if (state.kind === "failed") throw state.error;
      callerSignal.throwIfAborted();
      timeouts.resume();
      const events = await readNext();
      timeouts.pause();
      return events;
    },
    totals() {
      const { textBytes, images, isRefusal } = output.totals();
      const { model, usage } = progress;
      return { reason: isRefusal ? "filtered" : finishReasonOf(progress), model, usage, textBytes, images };
    },
    close() {
      if (state.kind === "reading") chunks.cancel();
      if (state.kind !== "failed") state = { kind: "ended" };
    },
  };
}
