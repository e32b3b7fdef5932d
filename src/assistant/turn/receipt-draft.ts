import type { ModelOperation } from "../../core/gateway.ts";
import { boundedReceipt, type Receipt, type ReceiptCall, type ReceiptContext } from "../../core/receipt.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { isFixable } from "./stored-messages.ts";
import type { CollectedAnswer } from "./stream-answer.ts";
import type { ChatSettings } from "./turn.ts";

/** The gateway's defaults, which a receipt does not repeat. */
const defaults = { temperature: 1, maxTokens: 1024 } as const;

/** Whether a part of a message is a file that a person sent. */
export function isFile(part: MessagePart): part is Extract<MessagePart, { readonly name: string }> {
  return "name" in part;
}

/** A call that has ended. */
export function toReceiptCall(
  operation: ModelOperation,
  asked: string,
  { model, fallback, usage }: Pick<CollectedAnswer, "model" | "fallback" | "usage">,
): ReceiptCall {
  return { operation, asked, model, ...(fallback === undefined ? {} : { fallback }), usage };
}

/** Collects the receipt of an answer while the answer is made. */
export type ReceiptDraft = ReturnType<typeof createReceiptDraft>;

/** Creates an empty draft. It counts its times from now. */
export function createReceiptDraft() {
  const startedAt = performance.now();
  const calls: ReceiptCall[] = [];
  let details: Omit<Receipt, "calls" | "totalMs"> = {};
  const elapsedMs = (): number => Math.round(performance.now() - startedAt);

  return {
    /** Records a call of a model. It replaces an earlier call of the same operation without an answer. */
    asks(operation: ModelOperation, asked: string): void {
      const last = calls.at(-1);
      if (last?.operation === operation && last.model === undefined) calls.pop();
      calls.push({ operation, asked });
    },
    /** Records the answer of the last model that was asked. */
    answered(answer: Parameters<typeof toReceiptCall>[2]): void {
      const last = calls.pop();
      if (last !== undefined) calls.push(toReceiptCall(last.operation, last.asked, answer));
    },
    /** Records calls that have ended, in order. */
    add(ended: readonly ReceiptCall[]): void {
      calls.push(...ended);
    },
    /** Records what the chat model is sent. */
    sends(context: ReceiptContext, { temperature, maxTokens }: Omit<ChatSettings, "systemPrompt">): void {
      details = {
        ...details,
        context,
        ...(temperature === defaults.temperature ? {} : { temperature }),
        ...(maxTokens === defaults.maxTokens ? {} : { maxTokens }),
      };
    },
    /** Counts the files among the parts of the question's messages. */
    reads(messages: readonly Pick<StoredMessage, "id" | "parts" | "room">[]): void {
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
    /** Returns the milliseconds until the first text, which came now or before. */
    firstText(): number {
      const firstTextMs = details.firstTextMs ?? elapsedMs();
      details = { ...details, firstTextMs };
      return firstTextMs;
    },
    /** The receipt so far, or `undefined` if no model was asked. */
    toReceipt(): Receipt | undefined {
      if (calls.length === 0) return undefined;
      return boundedReceipt({ ...details, calls, totalMs: elapsedMs() });
    },
  };
}
