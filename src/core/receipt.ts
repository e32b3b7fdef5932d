import type { ModelOperation, Usage } from "./gateway.ts";

/** One gateway call of an answer. */
export interface ReceiptCall {
  readonly operation: ModelOperation;
  /** The model that was asked. */
  readonly asked: string;
  /** Set where it did not answer, but summed up earlier messages for the answer. */
  readonly purpose?: "summary";
  /** Set where another model was asked because the first one did not answer. */
  readonly fallback?: string;
  /** The model as the gateway named it in its answer. It is absent without a whole answer. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** How much of the conversation a model was sent. */
export interface ReceiptContext {
  /** The number of messages that were sent, including the question. */
  readonly messages: number;
  /** The number of earlier messages that did not fit and are not summed up. */
  readonly leftOut: number;
  /** True where there are still older messages that were not considered. */
  readonly hasOlder?: true;
  /** The number of earlier messages that the model was sent in a summary instead. */
  readonly summedUp?: number;
  /** The estimated tokens that were sent. The call's usage has the model's own count. */
  readonly estimatedTokens: number;
  /** The number of pictures that were sent, and below of those that were not. */
  readonly images?: number;
  readonly leftOutImages?: number;
}

/** The files of the question. Only its messages hold the names, so that both are erased together. */
export interface ReceiptFiles {
  readonly read: number;
  readonly unread: number;
  /** How many recordings have words that a person can correct. Default 0. */
  readonly voices?: number;
  /** The ids of the messages that have them. */
  readonly of: readonly string[];
}

/** How an answer was made, for its Details button. It has a bounded size and contains no words of people. */
export interface Receipt {
  /** The calls in order. Transcriptions of voice notes come before the answer's own call. */
  readonly calls: readonly ReceiptCall[];
  readonly context?: ReceiptContext;
  readonly files?: ReceiptFiles;
  /** Present if it is not the gateway's default of 1. */
  readonly temperature?: number;
  /** The longest answer in tokens, if it is not the gateway's default of 1024. */
  readonly maxTokens?: number;
  /** The time from the start of the turn to the first text. */
  readonly firstTextMs?: number;
  /** The time from the start of the turn to the whole answer, before it is shown completely. */
  readonly totalMs: number;
}
