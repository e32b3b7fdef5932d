import type { ChatEvent, ChatRequest, FinishReason, Gateway, Usage } from "../../core/gateway.ts";
import type { Reply, ReplyFile } from "../../core/platform.ts";
import type { Conversations, MessagePart } from "../../core/storage.ts";
import { imageFileName } from "./image-file-name.ts";

/** Longest alternative text of a picture, in characters. */
const maxAltTextChars = 1000;

/** An answer as far as it has arrived. The caller stores it also when the stream breaks off. */
export interface PartialAnswer {
  text: string;
  readonly images: Extract<MessagePart, { kind: "image" }>[];
  readonly notices: string[];
}

/** How the model ended its answer. */
export interface AnswerEnd {
  readonly reason: FinishReason;
  readonly model: string;
  /** As in {@link ChatEvent}. */
  readonly fallback?: string;
  readonly usage: Usage;
  /** Resolves when the call is counted. The answer is stored meanwhile, in the same transaction. */
  readonly whenSettled: Promise<void>;
}

export interface StreamOptions {
  readonly gateway: Pick<Gateway, "chat">;
  readonly request: ChatRequest;
  readonly reply: Reply;
  /** Resolves when the turn is claimed and its question stored. The request is sent meanwhile. */
  readonly ready: Promise<unknown>;
  /** Markdown before the answer. Empty: none. */
  readonly lead: string;
  readonly conversations: Pick<Conversations, "putBlob">;
  readonly conversationId: string;
  /** Alternative text for pictures of this answer. */
  readonly altText: string;
  onFirstText(): void;
}

/**
 * Streams one chat answer into the reply and into `answer`, which holds what arrived also when this throws.
 * @throws ParleyError `gateway-…`, `store-unavailable`, a platform's, or the signal's reason
 */
export async function streamAnswer(
  options: StreamOptions,
  answer: PartialAnswer,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { reply, lead } = options;
  const events = options.gateway.chat(options.request, signal)[Symbol.asyncIterator]();
  // The request is sent before the reply has begun: the two waits overlap.
  const firstEvent = events.next();
  // Awaited below; until then a rejection must not count as unhandled.
  void Promise.allSettled([firstEvent]);
  try {
    await options.ready;
  } catch (error) {
    // Not waited for: a slow gateway would keep the failure from its person.
    void Promise.allSettled([events.return?.()]);
    throw error;
  }
  const pictures = createPictureBatch(options, answer);
  let isFinished = false;
  try {
    for (let step = await firstEvent; step.done !== true; step = await events.next()) {
      const event: ChatEvent = step.value;
      if (event.kind !== "image" && pictures.areWaiting()) await pictures.show();
      switch (event.kind) {
        case "text":
          if (answer.text === "") options.onFirstText();
          answer.text += event.text;
          reply.write({ lead, text: answer.text });
          break;
        case "reasoning":
          if (answer.text === "") reply.status("Thinking it through");
          break;
        case "notice":
          answer.notices.push(event.text);
          break;
        case "image":
          await pictures.add(event.image);
          break;
        case "finish": {
          isFinished = true;
          const whenSettled = Promise.resolve(events.return?.()).then(() => undefined);
          void Promise.allSettled([whenSettled]);
          return { ...event, whenSettled };
        }
      }
    }
    throw new Error("the gateway port ended an answer without a finish event");
  } catch (error) {
    await Promise.allSettled([pictures.show()]);
    throw error;
  } finally {
    // An unfinished stream would keep its connection and timers.
    if (!isFinished) await events.return?.();
  }
}

/** Pictures that arrive in a row are attached together: the platform shows them in one message. */
function createPictureBatch(options: StreamOptions, answer: PartialAnswer) {
  const { conversations, conversationId, reply } = options;
  const altText = options.altText.slice(0, maxAltTextChars);
  let waiting: { readonly file: ReplyFile; readonly part: PartialAnswer["images"][number] }[] = [];
  return {
    async add({ bytes, mediaType }: Extract<ChatEvent, { kind: "image" }>["image"]): Promise<void> {
      const name = imageFileName(answer.images.length + waiting.length + 1, mediaType);
      const blob = await conversations.putBlob(conversationId, bytes, mediaType);
      waiting.push({
        file: { name, mediaType, bytes, altText },
        part: { kind: "image", blob, name, altText },
      });
    },
    areWaiting: () => waiting.length > 0,
    async show(): Promise<void> {
      const batch = waiting;
      waiting = [];
      await Promise.all(batch.map(({ file }) => reply.attach(file)));
      answer.images.push(...batch.map(({ part }) => part));
    },
  };
}
