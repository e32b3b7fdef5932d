import type { FinishReason } from "../core/gateway.ts";
import type { CompletionChunk, Ending, ReportedUsage } from "./completion-chunk.ts";

/**
 * `empty`: nothing has arrived; `foreign`: only JSON of another shape; `open`: chunks without a finish reason; `whole`:
 * one complete document without a finish reason; `finished`: a finish reason; `done`: the end marker.
 */
export type AnswerPhase = "empty" | "foreign" | "open" | "whole" | "finished" | "done";

/** State of an answer that is being received. */
export interface AnswerProgress {
  readonly phase: AnswerPhase;
  /** The last finish reason. */
  readonly ending: Ending | undefined;
  /** The model named by the answer. */
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

/** The state after one more input. */
export function advance(progress: AnswerProgress, input: AnswerInput): AnswerProgress {
  if (input.kind === "done") return { ...progress, phase: "done" };
  const { chunk, isEvent } = input;
  const phase = nextPhase(progress, chunk, isEvent);
  const isUnchanged = phase === progress.phase && chunk.ending === undefined && chunk.usage === undefined;
  // Nearly every chunk of a stream.
  if (!chunk.isKnown || (isUnchanged && progress.model !== undefined)) return withPhase(progress, phase);
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

function withPhase(progress: AnswerProgress, phase: AnswerPhase): AnswerProgress {
  return progress.phase === phase ? progress : { ...progress, phase };
}

/** What an answer is when its body ends: complete, or the reason why it is not. */
export type AnswerVerdict = "complete" | "provider-failed" | "empty" | "foreign" | "interrupted";

/** @see {@link AnswerVerdict} */
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

/** The finish reason of a complete answer. */
export function finishReasonOf({ ending }: AnswerProgress): FinishReason {
  if (ending === undefined) return "stop";
  return ending.reason === "failed" ? "other" : ending.reason;
}
