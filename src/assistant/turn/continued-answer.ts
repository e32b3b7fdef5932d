import type { Usage } from "../../core/gateway.ts";
import { boundedReceipt, type Receipt } from "../../core/receipt.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { findEarlier } from "./earlier-answer.ts";
import { anchorOf } from "./join-continuation.ts";
import { estimateTokens, textOf } from "./stored-messages.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** The answer that a turn continues. `undefined`: it continues none. */
export async function findContinued(
  dependencies: Pick<TurnDependencies, "conversations">,
  turn: Pick<Turn, "conversationId" | "key" | "attempt" | "redo">,
): Promise<StoredMessage | undefined> {
  return turn.redo?.kind === "continue" ? await findEarlier(dependencies, turn) : undefined;
}

/** What a model is sent after the conversation, so that it writes the rest of its answer. Not stored. */
export function toContinuationRequest(answer: StoredMessage): StoredMessage[] {
  // The model has only thought: the question is asked again, with more room for the answer.
  if (textOfAnswer(answer) === "") return [];
  const text = [
    "Your last answer broke off before its end. Write the rest of it.",
    "Begin by repeating these last characters of it exactly as they are, then go on directly, without any comment, and without opening a code block again that is open:",
    anchorOf(textOfAnswer(answer)),
  ].join("\n\n");
  const request: StoredMessage = {
    id: `${answer.id}/continue`,
    role: "user",
    turnKey: answer.turnKey,
    parts: [{ kind: "text", text }],
    createdAt: answer.createdAt,
    estimatedTokens: estimateTokens(text),
  };
  return [answer, request];
}

/** The words of an answer exactly as they came, with the whitespace at their end. */
export function textOfAnswer({ parts }: StoredMessage): string {
  return parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n") || textOf(parts);
}

/** What an answer and its continuation used together. */
export function addUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const sum = (a: number | undefined, b: number | undefined) => (a ?? 0) + (b ?? 0);
  const added = (name: "promptTokens" | "completionTokens" | "images" | "audioSeconds" | "costUsd") =>
    one[name] === undefined && other[name] === undefined ? {} : { [name]: sum(one[name], other[name]) };
  return {
    ...one,
    ...added("promptTokens"),
    ...added("completionTokens"),
    ...added("images"),
    ...added("audioSeconds"),
    ...added("costUsd"),
    isEstimated: one.isEstimated || other.isEstimated,
  };
}

/** How an answer and its continuation came about together. */
export function addReceipt(one: Receipt | undefined, other: Receipt | undefined): Receipt | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return boundedReceipt({
    ...other,
    ...(one.firstTextMs === undefined ? {} : { firstTextMs: one.firstTextMs }),
    ...(one.files === undefined ? {} : { files: one.files }),
    calls: [...one.calls, ...other.calls],
    totalMs: one.totalMs + other.totalMs,
  });
}
