import { ParleyError } from "../core/errors.ts";
import type { FinishReason, AnswerSource, ChatEvent } from "../core/gateway.ts";
import type { Frame } from "../wire/frame.ts";
import {
  answerLimitsOf,
  createAnswerMeter,
  createChunkReader,
  createFrameReader,
  inSlices,
} from "../wire/stream-frames.ts";
import { translate } from "../words/translate.ts";
import { createAnswerOutput } from "./answer-output.ts";
import { AttemptError, type RetryClass, type ErrorInfo, toAttemptError } from "../wire/failures.ts";
import { type AttemptTimeouts, endGraceMs } from "../wire/attempt.ts";
import {
  type CompletionChunk,
  type Ending,
  type ReportedUsage,
  createCompletionReader,
} from "../wire/completion-chunk.ts";
import type { ImageLoader } from "./images.ts";
import { type GatewayResponse, pageTitle, translateFailure } from "../wire/transport.ts";

/** The totals of a complete answer, for the `finish` event. */
interface AnswerTotals {
  readonly reason: FinishReason;
  /** The model that the answer names. */
  readonly model: string | undefined;
  readonly usage: ReportedUsage | undefined;
  /** The bytes of text and thoughts. */
  readonly writtenBytes: number;
  readonly images: number;
  readonly sources: readonly AnswerSource[];
}

/**
 * After the first text, packets are gathered for this long, in milliseconds. Platforms do not show changes
 * more often, and each read costs the same however much arrived.
 */
const gatherMs = 40;

/** The response to read, and the call that it belongs to. */
interface ChatAnswerOptions {
  readonly response: GatewayResponse;
  readonly model: string;
  readonly timeouts: AttemptTimeouts;
  readonly images: ImageLoader;
  readonly maxImageBytes: number;
  /** Whether an image that the text links to as Markdown is downloaded. */
  isTrustedLink(url: string): boolean;
  /** The limit that was requested. An answer far beyond it is cut. */
  readonly maxTokens: number;
}

/** In `failed`, the next call throws the error, after the events that arrived before it. */
type ReaderState =
  | { readonly kind: "reading" | "ended" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Reads the body of a chat answer, streamed or not, into events. */
export function createChatAnswer(options: ChatAnswerOptions) {
  const { response, model, timeouts, images } = options;
  const { callerSignal } = response;
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
  const failures = createAnswerFailures(response, model);
  const completion = createCompletionReader();
  let state: ReaderState = { kind: "reading" };
  let progress = emptyProgress;

  const isOver = () => output.isOver() || meter.exceeded() !== undefined;

  const readFrame = async (frame: Exclude<Frame, { kind: "done" }>): Promise<boolean> => {
    if (frame.kind !== "json") {
      await output.flush();
      throw failures.ofFrame(frame);
    }
    return readChunk(completion.read(frame.value), frame.isEvent);
  };
  const readChunk = async (chunk: CompletionChunk, isEvent: boolean): Promise<boolean> => {
    if (chunk.error !== undefined) {
      await output.flush();
      throw failures.reported(chunk.error);
    }
    progress = advance(progress, { kind: "chunk", chunk, isEvent });
    output.addText(chunk.text);
    const hasMore = chunk.reasoning !== "" || chunk.refusal !== "" || chunk.images.length > 0;
    meter.add("aside", chunk.reasoning.length + chunk.refusal.length);
    if (hasMore) await output.addRest(chunk);
    const isMeaningful = hasMore || chunk.text !== "";
    if (!isMeaningful) meter.add("silent", 1);
    return isMeaningful;
  };

  /** Reads what was held back until it was known that the answer is over. */
  const readHeld = async () => {
    const held = completion.end();
    if (held !== undefined) await readChunk(held, true);
  };

  const readFrames = async (list: readonly Frame[]) => {
    let isMeaningful = frames.hasGrown();
    const hadEnding = progress.ending !== undefined;
    for (const frame of list) {
      if (frame.kind === "done") {
        await readHeld();
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

  const readSlices = async (packet: Uint8Array) => {
    for await (const slice of inSlices(packet)) {
      await readFrames(frames.push(slice));
      if (isOver() || progress.phase === "done") break;
    }
    // A server that sends anything at all is alive, also where its model thinks unseen.
    if (output.isEmpty() && progress.ending === undefined) timeouts.alive();
  };

  /** Reads one packet. Returns false at the end of the body. */
  const readPacket = async (): Promise<boolean> => {
    try {
      const packet = await chunks.next(output.isEmpty() ? 0 : gatherMs);
      if (packet === undefined) callerSignal.throwIfAborted();
      meter.add("wire", packet?.length ?? 0);
      if (packet !== undefined) await readSlices(packet);
      else {
        await readFrames(frames.end());
        await readHeld();
        await output.flush();
      }
      return packet !== undefined;
    } catch (error) {
      if (callerSignal.aborted) throw callerSignal.reason;
      const isOwn = error instanceof AttemptError || error instanceof ParleyError;
      if (isOwn && !timeouts.signal.aborted) throw error;
      // After the finish reason the answer is complete. At most its usage is lost.
      if (progress.ending !== undefined) return false;
      throw translateFailure(error, response);
    }
  };

  /** Ends an answer without content. A limit reached while thinking is no failure: a larger one helps. */
  const endWithoutContent = () => {
    const isSpentOnThoughts = progress.ending?.reason === "length" && output.totals().hasThoughts;
    if (!isSpentOnThoughts) throw failures.withoutContent(progress.ending, output.lost());
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
    // Servers usually end the body right after [DONE], so that the connection can be reused.
    chunks.leave(endGraceMs);
  };

  /** Ends an answer far beyond the request, to save money and memory. */
  const cut = async () => {
    chunks.cancel();
    if (output.isEmpty()) throw failures.ofFrame({ kind: "too-large" });
    await output.end("interrupted");
    output.addNotice(translate("answer.far-too-long", { max: options.maxTokens }));
    progress = { ...progress, phase: "finished", ending: { reason: "length", word: "length" } };
    state = { kind: "ended" };
  };

  /**
   * Ends the answer with an error. The events that arrived before it are returned first. If a person stops
   * the answer, they include text that was held back and is all that there is.
   */
  const fail = async (cause: unknown): Promise<readonly ChatEvent[]> => {
    const isInterruption = cause instanceof AttemptError && !output.isEmpty();
    const error = isInterruption ? toInterruption(cause, model) : cause;
    state = { kind: "failed", error };
    chunks.cancel();
    if (callerSignal.aborted || !output.isEmpty()) await output.end("interrupted");
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
        return fail(callerSignal.aborted ? callerSignal.reason : error);
      }
      const events = output.take();
      if (events.length > 0) return events;
    }
    return undefined;
  };

  return {
    /**
     * Returns the next events, at least one, or `undefined` after the last. Text that arrives together is one
     * event, and after the first text all text of 40 ms is.
     * @throws AttemptError before the first output; after it ParleyError `gateway-interrupted`; the caller's
     *   reason
     */
    async next(): Promise<readonly ChatEvent[] | undefined> {
      if (state.kind === "failed") throw state.error;
      if (callerSignal.aborted) return fail(callerSignal.reason);
      timeouts.resume();
      const events = await readNext();
      timeouts.pause();
      return events;
    },
    /** Returns the totals. It may be called only after `next` has returned `undefined`. */
    totals(): AnswerTotals {
      const { writtenBytes, images, isRefusal } = output.totals();
      const { model, usage } = progress;
      const reason = isRefusal ? "filtered" : finishReasonOf(progress);
      return { reason, model, usage, writtenBytes, images, sources: completion.sources() };
    },
    /** Cancels the request if it is still running. */
    close(): void {
      if (state.kind === "reading") chunks.cancel();
      if (state.kind !== "failed") state = { kind: "ended" };
    },
  };
}

/** Makes the errors of one chat answer. */
function createAnswerFailures(response: GatewayResponse, model: string) {
  const { status, headers, scrub } = response;
  const reported = (info: ErrorInfo) =>
    toAttemptError({ operation: "chat", model, status, headers, info }, scrub);
  const unreadable = (what: string, text: string) =>
    fail("gateway-bad-answer", `chat failed: ${what}`, "never", {
      status,
      ...(text !== "" && { gatewayMessage: scrub(text) }),
    });
  const fail = (
    code: ParleyError["code"],
    message: string,
    retryClass: RetryClass,
    detail: Readonly<Record<string, string | number>> = {},
  ) => new AttemptError(new ParleyError(code, message, { detail: { model, ...detail } }), retryClass);

  return {
    /** The gateway sent an error inside the answer. */
    reported,
    /** A frame is neither JSON nor the end marker. */
    ofFrame(frame: Exclude<Frame, { kind: "json" | "done" }>): AttemptError {
      switch (frame.kind) {
        case "failed":
          return reported({ message: frame.text, type: "server_error" });
        case "page":
          return unreadable("a web page instead of an answer", pageTitle(frame.text));
        case "too-large":
          return unreadable("the answer is too large", "");
        case "junk":
          return unreadable("the answer is no JSON", frame.text);
      }
    },
    /** The body ended without a complete answer. */
    ofVerdict(verdict: Exclude<AnswerVerdict, "complete">, ending: Ending | undefined): AttemptError {
      switch (verdict) {
        case "provider-failed":
          return reported({
            message: `the provider ended the answer with "${ending?.word ?? ""}"`,
            type: "server_error",
          });
        case "foreign":
          return unreadable("the answer has another shape", "");
        case "empty":
          return fail("gateway-empty-answer", "chat failed: an empty body", "lost");
        case "interrupted":
          return fail("gateway-interrupted", "the answer ended without a finish reason", "lost");
      }
    },
    /** The answer is complete, without text and images. `lost` names an image that could not be loaded. */
    withoutContent(ending: Ending | undefined, lost: string | undefined): AttemptError {
      const finishReason = scrub(ending?.word ?? "none", 40);
      if (lost !== undefined)
        return fail("gateway-bad-answer", "chat failed: a lost image", "never", {
          problem: lost,
        });
      return ending?.reason === "filtered"
        ? fail("gateway-refused", `chat failed: the answer was withheld (${finishReason})`, "never", {
            finishReason,
          })
        : fail("gateway-empty-answer", `chat failed: neither text nor image (${finishReason})`, "never", {
            finishReason,
          });
    },
  };
}

/** Makes the error of an answer that failed after output, `gateway-interrupted`, caused by the failure. */
function toInterruption({ failure }: AttemptError, model: string): ParleyError {
  if (failure.code === "gateway-interrupted") return failure;
  return new ParleyError("gateway-interrupted", `the answer was interrupted: ${failure.message}`, {
    cause: failure,
    ...(failure.retryAfterMs !== undefined && { retryAfterMs: failure.retryAfterMs }),
    detail: { model, ...failure.detail, reason: failure.code },
  });
}

/**
 * `empty`: nothing has arrived. `foreign`: only JSON of another shape. `open`: chunks without a finish
 * reason. `whole`: one complete document without a finish reason. `finished`: a finish reason. `done`: the
 * end marker.
 */
type AnswerPhase = "empty" | "foreign" | "open" | "whole" | "finished" | "done";

/** The state of an answer that is being received. */
export interface AnswerProgress {
  readonly phase: AnswerPhase;
  /** The last finish reason. */
  readonly ending: Ending | undefined;
  /** The model that the answer names. */
  readonly model: string | undefined;
  readonly usage: ReportedUsage | undefined;
}

/** One step: a parsed chunk (`isEvent` when it came in a stream), or the end marker. */
export type AnswerInput =
  | { readonly kind: "chunk"; readonly chunk: CompletionChunk; readonly isEvent: boolean }
  | { readonly kind: "done" };

/** The state before the first chunk. */
export const emptyProgress: AnswerProgress = {
  phase: "empty",
  ending: undefined,
  model: undefined,
  usage: undefined,
};

/** Returns the state after one more input. */
export function advance(progress: AnswerProgress, input: AnswerInput): AnswerProgress {
  if (input.kind === "done") return { ...progress, phase: "done" };
  const { chunk, isEvent } = input;
  const phase = nextPhase(progress, chunk, isEvent);
  if (!chunk.isKnown) return { ...progress, phase };
  return {
    phase,
    ending: chunk.ending ?? progress.ending,
    model: progress.model ?? chunk.model,
    usage: chunk.usage === undefined ? progress.usage : { ...progress.usage, ...chunk.usage },
  };
}

function nextPhase({ phase, ending }: AnswerProgress, chunk: CompletionChunk, isEvent: boolean): AnswerPhase {
  const isFirst = phase === "empty" || phase === "foreign";
  if (!chunk.isKnown) return isFirst ? "foreign" : phase;
  if (ending !== undefined || chunk.ending !== undefined) return "finished";
  return isFirst && !isEvent && !chunk.isDelta ? "whole" : "open";
}

/** What an answer is when its body ends: complete, or the reason why it is not. */
type AnswerVerdict = "complete" | "provider-failed" | "empty" | "foreign" | "interrupted";

export function verdictOf({ phase, ending }: AnswerProgress): AnswerVerdict {
  if (ending?.reason === "failed") return "provider-failed";
  switch (phase) {
    case "empty":
      return "empty";
    case "foreign":
      return "foreign";
    case "open":
      return "interrupted";
    case "whole":
    case "finished":
    case "done":
      return "complete";
  }
}

/** Returns the finish reason of a complete answer. */
export function finishReasonOf({ ending }: AnswerProgress): FinishReason {
  if (ending === undefined) return "stop";
  return ending.reason === "failed" ? "other" : ending.reason;
}
