import type { ModelOperation, Usage } from "../../core/gateway.ts";
import { boundedReceipt, type Receipt, type ReceiptCall, type ReceiptContext } from "../../core/receipt.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { isFixable } from "./stored-messages.ts";

/** The gateway's defaults, which a receipt does not repeat. */
const defaults = { temperature: 1, maxTokens: 1024 } as const;

/** The part of a gateway's answer that a receipt keeps. */
interface AnsweredCall {
  readonly model: string;
  readonly fallback?: string;
  readonly usage: Usage;
}

/** Collects the receipt of an answer while the answer is made. */
export interface ReceiptDraft {
  /** Records a call of a model. It replaces an earlier call of the same operation without an answer. */
  asks(operation: ModelOperation, asked: string): void;
  /** Records the answer of the last model that was asked. */
  answered(answer: AnsweredCall): void;
  /** Records calls that have ended, in order. */
  add(calls: readonly ReceiptCall[]): void;
  /** Records what the chat model is sent. */
  sends(
    context: ReceiptContext,
    settings: { readonly temperature: number; readonly maxTokens: number },
  ): void;
  /** Counts the files among the parts of the question's messages. */
  reads(messages: readonly Pick<StoredMessage, "id" | "parts" | "room">[]): void;
  firstText(): void;
  /** The receipt so far, or `undefined` if no model was asked. */
  toReceipt(): Receipt | undefined;
}

/** Whether a part of a message is a file that a person sent. */
export function isFile(part: MessagePart): part is Extract<MessagePart, { readonly name: string }> {
  return "name" in part;
}

/** Creates an empty draft. `startedAt` is the start of the turn on the clock of `performance.now()`. */
export function createReceiptDraft(startedAt = performance.now()): ReceiptDraft {
  const calls: ReceiptCall[] = [];
  let details: Omit<Receipt, "calls" | "totalMs"> = {};
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);

  return {
    asks(operation, asked) {
      const last = calls.at(-1);
      if (last?.operation === operation && last.model === undefined) calls.pop();
      calls.push({ operation, asked });
    },
    answered({ model, fallback, usage }) {
      const last = calls.pop();
      if (last === undefined) return;
      calls.push({ ...last, model, ...(fallback === undefined ? {} : { fallback }), usage });
    },
    add(ended) {
      calls.push(...ended);
    },
    sends(context, { temperature, maxTokens }) {
      details = {
        ...details,
        context,
        ...(temperature === defaults.temperature ? {} : { temperature }),
        ...(maxTokens === defaults.maxTokens ? {} : { maxTokens }),
      };
    },
    reads(messages) {
      const having = messages.filter(({ parts }) => parts.some(isFile));
      if (having.length === 0) return;
      const files = having.flatMap(({ parts }) => parts.filter(isFile));
      const unread = files.filter(({ kind }) => kind === "unread").length;
      const of = having.map(({ id }) => id);
      const own = having.filter(({ room }) => room === undefined);
      const voices = own.flatMap(({ parts }) => parts.filter(isFixable)).length;
      const spoken = voices === 0 ? {} : { voices };
      details = { ...details, files: { read: files.length - unread, unread, ...spoken, of } };
    },
    firstText() {
      details = { ...details, firstTextMs: details.firstTextMs ?? elapsedMs() };
    },
    toReceipt() {
      if (calls.length === 0) return undefined;
      return boundedReceipt({ ...details, calls, totalMs: elapsedMs() });
    },
  };
}
