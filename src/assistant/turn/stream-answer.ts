import type {
  ChatEvent,
  ChatRequest,
  FinishReason,
  Gateway,
  GeneratedImage,
  Usage,
} from "../../core/gateway.ts";
import type { Reply } from "../../core/platform.ts";
import type { Conversations, MessagePart, StoredCall } from "../../core/storage.ts";
import type { Joiner } from "./join-continuation.ts";
import { imageFileName } from "./image-file-name.ts";
import { translate } from "../../words/translate.ts";

/** Longest alternative text of a picture, in characters. */
const maxAltTextChars = 1000;

/** An answer as far as it has arrived. The caller stores it also when the stream breaks off. */
export interface PartialAnswer {
  text: string;
  /** What the model thought before it, bounded. */
  thoughts?: string;
  /** The text is not shown: it may be no words for people. */
  isHeldBack?: boolean;
  readonly images: Extract<MessagePart, { kind: "image" }>[];
  readonly notices: string[];
  /** The change of a picture that the model has asked for. */
  call?: StoredCall;
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
  /** Joins the text to that of an earlier answer. Default: it begins a new one. */
  readonly joiner?: Joiner | undefined;
  /** Whether a text so far is not shown yet: it may be no words for people. Default: all is shown. */
  isHeldBack?(text: string): boolean;
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
  const { reply, lead, joiner } = options;
  /** Shows what was held back until it was known how it is joined. */
  const endText = (): void => {
    const text = joiner?.end();
    if (text === undefined || text === answer.text) return;
    answer.text = text;
    reply.write({ lead, text });
  };
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
  let isFinished = false;
  let hasText = false;
  try {
    for (let step = await firstEvent; step.done !== true; step = await events.next()) {
      const event: ChatEvent = step.value;
      switch (event.kind) {
        case "text": {
          if (!hasText) options.onFirstText();
          hasText = true;
          const text = joiner === undefined ? answer.text + event.text : joiner.add(event.text);
          if (text === undefined) break;
          answer.text = text;
          answer.isHeldBack = options.isHeldBack?.(text) === true;
          if (!answer.isHeldBack) reply.write({ lead, text, thoughts: answer.thoughts });
          break;
        }
        case "reasoning":
          addThoughts(answer, event.text);
          if (answer.text === "") reply.status(translate("status.thinking"));
          break;
        case "retract":
          addThoughts(answer, answer.text);
          answer.text = "";
          reply.write({ lead, text: "" });
          break;
        case "notice":
          answer.notices.push(event.text);
          break;
        case "image":
          await keepPicture(options, answer, event.image);
          break;
        case "finish": {
          isFinished = true;
          endText();
          const whenSettled = Promise.resolve(events.return?.()).then(() => undefined);
          void Promise.allSettled([whenSettled]);
          return { ...event, whenSettled };
        }
      }
    }
    throw new Error("the gateway port ended an answer without a finish event");
  } catch (error) {
    endText();
    // Half of what is no words for people is not shown as the answer.
    if (options.isHeldBack?.(answer.text) === true) answer.text = "";
    throw error;
  } finally {
    // An unfinished stream would keep its connection and timers.
    if (!isFinished) await events.return?.();
  }
}

/** Longest thoughts that are kept with an answer, in characters. */
const maxThoughtChars = 20_000;

function addThoughts(answer: PartialAnswer, text: string): void {
  answer.thoughts = ((answer.thoughts ?? "") + text).slice(0, maxThoughtChars);
}

/** Keeps a picture: it is shown once the whole answer is stored, with the others in one message. */
export async function keepPicture(
  {
    conversations,
    conversationId,
    altText,
  }: Pick<StreamOptions, "conversations" | "conversationId" | "altText">,
  answer: PartialAnswer,
  { bytes, mediaType }: GeneratedImage,
): Promise<void> {
  const name = imageFileName(answer.images.length + 1, mediaType);
  const blob = await conversations.putBlob(conversationId, bytes, mediaType);
  answer.images.push({ kind: "image", blob, name, altText: altText.slice(0, maxAltTextChars) });
}
