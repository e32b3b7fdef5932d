import type { ModelOperation, Usage } from "./gateway.ts";

/** One gateway call of an answer. */
export interface ReceiptCall {
  readonly operation: ModelOperation;
  /** The model that was asked. */
  readonly asked: string;
  /** Set where another model was asked instead, because the first one did not answer. */
  readonly fallback?: string;
  /** The model as the gateway named it in its answer. Absent: there was no whole answer. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** What of the conversation a model was sent. */
export interface ReceiptContext {
  /** Messages that were sent, the question included. */
  readonly messages: number;
  /** Earlier messages that did not fit. */
  readonly leftOut: number;
  /** True where there are still older ones that were not considered. */
  readonly hasOlder?: true;
  /** Estimated tokens of what was sent; the call's usage has the model's own count. */
  readonly estimatedTokens: number;
  /** Pictures that were sent, and those that were not. */
  readonly images?: number;
  readonly leftOutImages?: number;
}

/** The files of the question. Their names are in its own messages alone, so that they are erased with these. */
export interface ReceiptFiles {
  readonly read: number;
  readonly unread: number;
  /** Recordings whose words a person can correct. Default 0. */
  readonly voices?: number;
  /** Ids of the messages that have them. */
  readonly of: readonly string[];
}

/** How an answer came about: stored with it and shown by its Details button. Of bounded size; it has no words of people. */
export interface Receipt {
  /** In order; transcriptions of voice notes come before the answer's own call. */
  readonly calls: readonly ReceiptCall[];
  readonly context?: ReceiptContext;
  readonly files?: ReceiptFiles;
  /** Where it is not the gateway's default, 1. */
  readonly temperature?: number;
  /** Longest answer in tokens, where it is not the gateway's default, 1024. */
  readonly maxTokens?: number;
  /** From the start of the turn to the first text. */
  readonly firstTextMs?: number;
  /** From the start of the turn to the whole answer, before it is shown completely. */
  readonly totalMs: number;
}

/** Bounds of a {@link Receipt}; what is longer is cut. */
const max = { calls: 12, messages: 12, idChars: 500, modelChars: 200 } as const;

/** The receipt with its lists and texts cut to their bounds, so that it stays below 20 KB. */
export function boundedReceipt(receipt: Receipt): Receipt {
  const { files, calls, ...rest } = receipt;
  return {
    ...rest,
    // The answer's own call is the last one.
    calls: calls.slice(-max.calls).map((call) => ({
      ...call,
      asked: cut(call.asked, max.modelChars),
      ...(call.fallback === undefined ? {} : { fallback: cut(call.fallback, max.modelChars) }),
      ...(call.model === undefined ? {} : { model: cut(call.model, max.modelChars) }),
    })),
    ...(files === undefined
      ? {}
      : {
          files: {
            ...files,
            of: files.of.filter((id) => id.length <= max.idChars).slice(0, max.messages),
          },
        }),
  };
}

function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, "")}…`;
}
