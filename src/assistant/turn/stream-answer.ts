import { imageFileName } from "./image-file-name.ts";
import type { ChatEvent, ChatRequest, FinishReason, Gateway, Usage } from "../../core/gateway.ts";
import type { Conversations, MessagePart } from "../../core/storage.ts";
import type { Reply } from "../../core/platform.ts";

/** What an answer has come to, complete or not: the caller keeps it also when the stream breaks off. */
export interface AnswerSoFar {
  text: string;
  readonly images: Extract<MessagePart, { kind: "image" }>[];
  readonly notices: string[];
}

export interface AnswerEnd {
  readonly reason: FinishReason;
  readonly model: string;
  readonly usage: Usage;
}

export interface AnswerOptions {
  readonly gateway: Pick<Gateway, "chat">;
  readonly request: ChatRequest;
  readonly reply: Reply;
  /** Resolves when the placeholder is visible; the request is under way meanwhile. */
  readonly shown: Promise<void>;
  /** Stands before the model's words in the reply: what was heard, what was asked. */
  readonly lead: string;
  readonly conversations: Pick<Conversations, "putBlob">;
  readonly conversationId: string;
  /** Says what a picture of this answer shows, for people who do not see it. */
  readonly altText: string;
  onFirstText(): void;
}

/**
 * Streams one chat answer into the reply and into `soFar`.
 * @throws ParleyError `gateway-…`, `store-unavailable`, a platform's, or the signal's reason; `soFar` then holds what came
 */
export async function streamAnswer(
  options: AnswerOptions,
  soFar: AnswerSoFar,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { reply, lead } = options;
  const events = options.gateway.chat(options.request, signal)[Symbol.asyncIterator]();
  // The request starts before the placeholder is up: the two waits run side by side.
  const firstEvent = events.next();
  // It may fail while the placeholder is still waited for: awaited below, it is nobody's unhandled rejection meanwhile.
  void Promise.allSettled([firstEvent]);
  try {
    await options.shown;
  } catch (error) {
    await Promise.allSettled([firstEvent, events.return?.()]);
    throw error;
  }
  try {
    for (let step = await firstEvent; step.done !== true; step = await events.next()) {
      const event: ChatEvent = step.value;
      switch (event.kind) {
        case "text":
          if (soFar.text === "") options.onFirstText();
          soFar.text += event.text;
          reply.write({ lead, text: soFar.text });
          break;
        case "reasoning":
          if (soFar.text === "") reply.status("Thinking it through");
          break;
        case "notice":
          soFar.notices.push(event.text);
          break;
        case "image": {
          const { bytes, mediaType } = event.image;
          const name = imageFileName(soFar.images.length + 1, mediaType);
          const altText = options.altText.slice(0, 1000);
          const blob = await options.conversations.putBlob(options.conversationId, bytes, mediaType);
          await reply.attach({ name, mediaType, bytes, altText });
          soFar.images.push({ kind: "image", blob, name, altText });
          break;
        }
        case "finish":
          return event;
      }
    }
    throw new Error("the gateway port ended an answer without finish");
  } finally {
    // Left before its end, the stream would keep its connection and timers.
    await events.return?.();
  }
}
