import { otherModelNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { ConversationSettings, StoredMessage } from "../../core/storage.ts";
import { budgetFor, buildContext, maxImages } from "./context-window.ts";
import type { ReadMessages } from "./read-messages.ts";
import type { ReceiptDraft } from "./receipt-draft.ts";
import { textOf, withoutRetriedAttempts } from "./stored-messages.ts";
import { streamAnswer, type AnswerEnd, type PartialAnswer } from "./stream-answer.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** Most messages of a conversation that are considered for one answer. */
const maxHistory = 200;
/** Share of the context window that is used after the gateway has refused a prompt as too long. */
const shrunkShare = 0.4;

export interface Question {
  readonly read: ReadMessages;
  /** Markdown before the answer. Empty: none. */
  readonly lead: string;
  /** Resolves when the reply has begun and its address is saved. */
  readonly shown: Promise<void>;
  /** When the turn began, as `performance.now()` counts. */
  readonly startedAt: number;
  readonly receipt: ReceiptDraft;
}

export interface ModelAnswer extends AnswerEnd {
  /** The conversation's settings as they were when the model was asked. */
  readonly settings: ConversationSettings;
}

/**
 * Asks the model with as much of the conversation as fits, and streams its answer into the reply and into `answer`.
 * A prompt that the gateway refuses as too long is cut and sent once more.
 * @throws ParleyError as {@link streamAnswer} does
 */
export async function askModel(
  dependencies: TurnDependencies,
  turn: Turn,
  question: Question,
  answer: PartialAnswer,
): Promise<ModelAnswer> {
  const { conversations } = dependencies;
  const [settings, log] = await Promise.all([
    conversations.settings(turn.conversationId),
    conversations.recent(turn.conversationId, { maxMessages: maxHistory + 1 }),
  ]);
  const chosen = await dependencies.models.choose("chat", turn.model, turn.signal);
  answer.notices.push(...dependencies.models.takeNotices());
  const sinceReset = withoutRetriedAttempts(afterReset(log, settings.resetAfter));
  const history = upToTurn(sinceReset, question.read.stored);
  const instead = hasPictures(history)
    ? await dependencies.models.insteadForPictures(chosen, turn.signal)
    : undefined;
  const model = instead ?? chosen;
  if (instead !== undefined) answer.notices.push(otherModelNotice(chosen, instead));
  const attempt = async (share: number): Promise<AnswerEnd> => {
    const release = await dependencies.admitBytes(imageBytesOf(history), turn.signal);
    try {
      return await askOnce(dependencies, turn, { ...question, answer, model, history, share });
    } finally {
      release();
    }
  };
  try {
    return { ...(await attempt(1)), settings };
  } catch (error) {
    if (!isParleyError(error, "gateway-context-length") || answer.text !== "") throw error;
    return { ...(await attempt(shrunkShare)), settings };
  }
}

interface Attempt extends Question {
  readonly answer: PartialAnswer;
  readonly model: string;
  readonly history: readonly StoredMessage[];
  /** Of the context window, 0 to 1. */
  readonly share: number;
}

async function askOnce(dependencies: TurnDependencies, turn: Turn, attempt: Attempt): Promise<AnswerEnd> {
  const { conversations, chat, factors, meter, models } = dependencies;
  const { model, history, answer, receipt } = attempt;
  const known = models.find(model);
  const context = await buildContext({
    history: history.slice(-maxHistory),
    hasOlder: history.length > maxHistory,
    systemPrompt: chat.systemPrompt,
    budgetTokens: budgetFor(known?.contextLength, chat.maxTokens, factors.of(model)) * attempt.share,
    seesImages: known?.capabilities.seesImages,
    getBlob: (hash) => conversations.getBlob(turn.conversationId, hash),
  });
  receipt.asks("chat", model);
  receipt.sends(context.receipt, chat);
  const end = await streamAnswer(
    {
      gateway: dependencies.gateway,
      request: {
        model,
        messages: context.messages,
        maxTokens: chat.maxTokens,
        temperature: chat.temperature,
        stream: true,
      },
      reply: turn.reply,
      ready: Promise.all([attempt.shown, attempt.read.whenStored]),
      lead: attempt.lead,
      conversations,
      conversationId: turn.conversationId,
      altText: textOf(attempt.read.parts),
      onFirstText() {
        receipt.firstText();
        meter.firstText({ platform: turn.platform.id }, (performance.now() - attempt.startedAt) / 1000);
      },
    },
    answer,
    turn.signal,
  );
  receipt.answered(end);
  answer.notices.push(...context.notices);
  factors.learn(model, context.estimatedTokens, end.usage.promptTokens);
  meter.call({ operation: "chat", outcome: end.reason, model: end.model }, end.usage);
  return end;
}

/** Memory that the pictures of a prompt take, in bytes: as base64, in the request's JSON, and in its encoded body. */
function imageBytesOf(history: readonly StoredMessage[]): number {
  const sizes = history
    .flatMap((message) => message.parts)
    .flatMap((part) => (part.kind === "image" ? [part.blob.sizeBytes] : []));
  return Math.ceil(sizes.slice(-maxImages).reduce((sum, size) => sum + size, 0) * (4 / 3) * 3);
}

/** Whether people have shown pictures. Those that models drew are described in words as well. */
function hasPictures(history: readonly StoredMessage[]): boolean {
  return history.some(
    ({ role, parts }) =>
      role === "user" && parts.some(({ kind }) => kind === "image" || kind === "image-link"),
  );
}

/** What was said since `/reset`; all of it where the reset lies before the messages at hand. */
function afterReset(log: readonly StoredMessage[], resetAfter: string | undefined): readonly StoredMessage[] {
  return log.slice(log.findIndex((message) => message.id === resetAfter) + 1);
}

/** The log up to the turn's own messages: later ones belong to the next turn. */
function upToTurn(log: readonly StoredMessage[], own: readonly StoredMessage[]): readonly StoredMessage[] {
  const lastId = own.at(-1)?.id;
  const end = log.findIndex((message) => message.id === lastId);
  if (end !== -1) return log.slice(0, end + 1);
  // They are still being stored, some of them perhaps already.
  const ownIds = new Set(own.map(({ id }) => id));
  return [...log.filter(({ id }) => !ownIds.has(id)), ...own];
}
