import type { CancelTimer, Clock } from "../../core/clock.ts";
import type { ChatEvent, ChatRequest, Gateway, GeneratedImage } from "../../core/gateway.ts";
import type { Reply } from "../../core/reply.ts";
import type { Conversations, MessagePart, StoredCall } from "../../core/storage.ts";
import { currentTurn, inTurn, type Span, type Tracer } from "../../core/telemetry.ts";
import { createDirectionBalance } from "../../support/writing-direction.ts";
import { currentLanguage, inLanguage, translate } from "../../words/translate.ts";
import type { createJoiner } from "./continued-answer.ts";

/** How many characters of a model's thoughts are kept. */
const maxThoughtChars = 20_000;
/** The longest alternative text of a picture, in characters. */
const maxAltTextChars = 1000;

/** The part of an answer that has arrived. The caller stores it even if the stream breaks off. */
export interface PartialAnswer {
  text: string;
  /** The model's thoughts before the text, if they are known. */
  thoughts?: string;
  /** Whether the text is not shown, because it may be no words for people. */
  isHeldBack?: boolean;
  readonly images: Extract<MessagePart, { kind: "image" }>[];
  readonly notices: string[];
  /** The change of a picture that the model has asked for. */
  call?: StoredCall;
}

/** Whether something of an answer has arrived that people can read or see. */
export function hasContent({ text, images }: Pick<PartialAnswer, "text" | "images">): boolean {
  return text !== "" || images.length > 0;
}

type Finish = Omit<Extract<ChatEvent, { readonly kind: "finish" }>, "kind">;

/** How the model ended its answer. */
export interface AnswerEnd extends Finish {
  /** Resolves when the call is counted. The answer is stored meanwhile, in the same transaction. */
  readonly whenSettled: Promise<void>;
}

interface StreamOptions {
  readonly gateway: Pick<Gateway, "chat">;
  readonly request: ChatRequest;
  readonly reply: Reply;
  /** Resolves when the turn is claimed and its question stored. The request is sent at the same time. */
  readonly ready: Promise<unknown>;
  /** Markdown before the answer, or an empty text. */
  readonly lead: string;
  readonly conversations: Pick<Conversations, "putBlob">;
  readonly conversationId: string;
  /** The alternative text for pictures of this answer. */
  readonly altText: string;
  /** Joins the text to an earlier answer. Without it a new answer begins. */
  readonly joiner?: ReturnType<typeof createJoiner> | undefined;
  /** Whether a partial text is not shown yet, because it may be no words for people. Default: never. */
  isHeldBack?(text: string): boolean;
  onFirstText(): void;
}

/**
 * Streams a chat answer into the reply and into `answer`, which holds what arrived even if this throws.
 * @throws ParleyError `gateway-…`, `store-unavailable`, one of the platform, or the signal's reason
 */
export async function streamAnswer(
  options: StreamOptions,
  answer: PartialAnswer,
  signal: AbortSignal,
): Promise<AnswerEnd> {
  const { reply, lead, joiner } = options;
  const write = (text: string): void => {
    const { thoughts } = answer;
    reply.write({ lead, text, ...(thoughts === undefined ? {} : { thoughts }) });
  };
  const directions = createDirectionBalance();
  /** Shows text that was held back until its joint was known. */
  const endText = (): void => {
    const text = (joiner?.end() ?? answer.text) + directions.end();
    if (text === answer.text) return;
    answer.text = text;
    write(text);
  };
  const events = options.gateway.chat(options.request, signal)[Symbol.asyncIterator]();
  // The request is sent before the reply has begun, so that the two waits overlap.
  const firstEvent = events.next();
  // It is awaited below. Until then a rejection must not count as unhandled.
  void Promise.allSettled([firstEvent]);
  try {
    await options.ready;
  } catch (error) {
    // This does not wait, because a slow gateway would delay the failure for the person.
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
          const added = directions.add(event.text);
          const text = joiner === undefined ? answer.text + added : joiner.add(added);
          if (text === undefined) break;
          answer.text = text;
          answer.isHeldBack = options.isHeldBack?.(text) === true;
          if (!answer.isHeldBack) write(text);
          break;
        }
        case "reasoning":
          answer.thoughts = addThoughts(answer.thoughts, event.text);
          if (answer.text === "") {
            reply.status(translate("status.thinking"));
            reply.think?.(answer.thoughts);
          }
          break;
        case "retract":
          answer.thoughts = addThoughts(answer.thoughts, answer.text);
          directions.end();
          answer.text = "";
          write("");
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
    // A partial text that is no words for people is not shown as the answer.
    if (options.isHeldBack?.(answer.text) === true) answer.text = "";
    throw error;
  } finally {
    // An unfinished stream would keep its connection and timers.
    if (!isFinished) await events.return?.();
  }
}

function addThoughts(before: string | undefined, more: string): string {
  return ((before ?? "") + more).slice(0, maxThoughtChars);
}

/** Keeps a picture, which is shown in one message with the others when the whole answer is stored. */
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

/** A plain file name for a picture that a model made, for example `picture-1.png`. */
export function imageFileName(number: number, mediaType: string): string {
  const extension = /^image\/(png|jpeg|webp|gif|avif)$/.exec(mediaType)?.[1] ?? "img";
  return `picture-${number}.${extension === "jpeg" ? "jpg" : extension}`;
}

/** A whole chat answer. */
export interface CollectedAnswer extends Finish {
  readonly text: string;
  readonly images: readonly GeneratedImage[];
  readonly notices: readonly string[];
}

/** Collects an answer that is not streamed to anybody. @throws what the stream throws */
export async function collectAnswer(events: AsyncIterable<ChatEvent>): Promise<CollectedAnswer> {
  let text = "";
  const images: GeneratedImage[] = [];
  const notices: string[] = [];
  for await (const event of events) {
    if (event.kind === "text") text += event.text;
    else if (event.kind === "retract") text = "";
    else if (event.kind === "image") images.push(event.image);
    else if (event.kind === "notice") notices.push(event.text);
    else if (event.kind === "finish") {
      const { kind: _kind, ...end } = event;
      return { text, images, notices, ...end };
    }
  }
  throw new Error("the gateway port ended an answer without a finish event");
}

/** A reply that is a step of a turn's trace, from its first sign until its end is visible. */
export function createTracedReply(reply: Reply, tracer: Tracer, parent: Span): Reply {
  if (!tracer.isOn) return reply;
  let span: Span | undefined;
  let hasText = false;
  const begin = (): Span => (span ??= tracer.start("reply", { parent, kind: "client" }));

  async function step(name: string, work: () => Promise<void>, isLast = false): Promise<void> {
    const current = begin();
    try {
      await work();
      current.note(name);
    } catch (error) {
      current.fail(error);
      throw error;
    } finally {
      if (isLast) current.end();
    }
  }

  return {
    ...reply,
    show: () => step("shown", () => reply.show()),
    write(content) {
      if (!hasText && content.text !== "") {
        hasText = true;
        begin().note("first text");
      }
      reply.write(content);
    },
    attach: (file) => step("file shown", () => reply.attach(file)),
    finish: (ending) => step("finished", () => reply.finish(ending), true),
    fail: (failure) => step("failed", () => reply.fail(failure), true),
    abandon() {
      reply.abandon();
      span?.note("abandoned");
      span?.end();
    },
  };
}

/** A shorter wait needs no words. */
const minShownMs = 2000;

/** Does the work of a turn. Where the gateway asks for a pause, the reply says how long it is. */
export async function showingWaits<T>(
  reply: Pick<Reply, "status">,
  clock: Pick<Clock, "after">,
  work: () => Promise<T>,
): Promise<T> {
  const scope = currentTurn();
  if (scope === undefined) return await work();
  const language = currentLanguage();
  let cancelTimer: CancelTimer | undefined;
  const onWait = (waitMs: number): void => {
    cancelTimer?.();
    if (waitMs < minShownMs) return;
    const say = (words: () => string) => reply.status(inLanguage(language, words), { isLong: true });
    say(() => translate("status.gateway-busy", { count: Math.ceil(waitMs / 1000) }));
    cancelTimer = clock.after(waitMs, () => say(() => translate("status.asking-again")), {
      keepsAlive: false,
    });
  };
  try {
    return await inTurn({ ...scope, onWait }, work);
  } finally {
    cancelTimer?.();
  }
}
