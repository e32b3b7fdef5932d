import { ParleyError } from "../../core/errors.ts";
import type { ChatMessage } from "../../core/gateway.ts";
import { collectAnswer, type CollectedAnswer } from "./collect-answer.ts";
import type { ReceiptDraft } from "./receipt-draft.ts";
import type { PicturePart } from "./stored-pictures.ts";
import type { TurnDependencies } from "./turn.ts";

/** A change that is asked of an image-capable chat model. */
export interface ChangeRequest {
  readonly model: string;
  readonly prompt: string;
  readonly part: PicturePart;
  /** The conversation that has the picture's bytes. */
  readonly conversationId: string;
}

/**
 * Asks a model to change one picture, without the conversation.
 * @throws ParleyError `gateway-…`; `attachment-gone`: the picture is no longer stored
 */
export async function requestChange(
  { gateway, conversations, meter, chat }: TurnDependencies,
  { model, prompt, part, conversationId }: ChangeRequest,
  receipt: ReceiptDraft,
  signal: AbortSignal,
): Promise<CollectedAnswer> {
  const url = await urlOf(conversations, conversationId, part);
  const messages: ChatMessage[] = [
    {
      role: "user",
      content: [
        { kind: "text", text: prompt },
        { kind: "image", url },
      ],
    },
  ];
  receipt.asks("image", model);
  const { maxTokens, temperature } = chat;
  // Not streamed: nothing can be shown before the picture is complete.
  const events = gateway.chat({ model, messages, maxTokens, temperature, stream: false }, signal);
  const answer = await collectAnswer(events);
  receipt.answered(answer);
  meter.call({ operation: "image", outcome: answer.reason, model: answer.model }, answer.usage);
  return answer;
}

async function urlOf(
  conversations: Pick<TurnDependencies["conversations"], "getBlob">,
  conversationId: string,
  part: PicturePart,
): Promise<string> {
  if (part.kind === "image-link") return part.url;
  const blob = await conversations.getBlob(conversationId, part.blob.hash);
  if (blob === undefined)
    throw new ParleyError("attachment-gone", "blob missing", { detail: { name: part.name } });
  return `data:${blob.mediaType};base64,${Buffer.from(blob.bytes).toString("base64")}`;
}
