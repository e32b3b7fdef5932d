import { otherModelNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { ConversationSettings, StoredMessage } from "../../core/storage.ts";
import { charsOf, maxRecentChars } from "../../core/stored-text.ts";
import { textOfAnswer, toContinuationRequest } from "./continued-answer.ts";
import { createJoiner } from "./join-continuation.ts";
import { lastShownNotice } from "../../core/picture-words.ts";
import type { ReceiptContext } from "../../core/receipt.ts";
import { canChangePictures, changeMeantPicture } from "./change-meant-picture.ts";
import {
  findMeantPictures,
  mayAskForChange,
  parseAskedChange,
  type MeantPictures,
} from "./meant-pictures.ts";
import { budgetFor, buildContext, maxImages } from "./context-window.ts";
import type { ReadMessages } from "./read-messages.ts";
import type { ReceiptDraft } from "./receipt-draft.ts";
import { afterReset, hasPictures, textOf, withoutRetriedAttempts } from "./stored-messages.ts";
import { streamAnswer, type AnswerEnd, type PartialAnswer } from "./stream-answer.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** Most messages of a conversation that are considered for one answer. */
export const maxHistory = 200;
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
  /** The answer whose rest is asked for. */
  readonly continued: StoredMessage | undefined;
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
  const { continued } = question;
  const history = [
    ...upToTurn(sinceReset, question.read.stored),
    ...(continued === undefined ? [] : toContinuationRequest(continued)),
  ];
  const instead = hasPictures(history)
    ? await dependencies.models.insteadForPictures(chosen, turn.signal)
    : undefined;
  const model = instead ?? chosen;
  if (instead !== undefined) answer.notices.push(otherModelNotice(chosen, instead));
  const meant = await findMeant(dependencies, turn, history, settings);
  const attempt = async (share: number): Promise<AnswerEnd> => {
    const release = await dependencies.admitBytes(imageBytesOf(history), turn.signal);
    try {
      return await askOnce(dependencies, turn, { ...question, answer, model, history, meant, share });
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
  readonly meant: MeantPictures | undefined;
  /** Of the context window, 0 to 1. */
  readonly share: number;
}

async function askOnce(dependencies: TurnDependencies, turn: Turn, attempt: Attempt): Promise<AnswerEnd> {
  const { conversations, chat, factors, meter, models } = dependencies;
  const { model, history, meant, answer, receipt } = attempt;
  const known = models.find(model);
  const context = await buildContext({
    history: history.slice(-maxHistory),
    hasOlder: history.length > maxHistory || charsOf(history) > maxRecentChars,
    systemPrompt: [chat.systemPrompt, meant?.note ?? ""].filter((text) => text !== "").join("\n\n"),
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
      joiner: attempt.continued === undefined ? undefined : createJoiner(textOfAnswer(attempt.continued)),
      isHeldBack: (text) => meant !== undefined && mayAskForChange(text),
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
  if (meant !== undefined) await endWithPictures(dependencies, turn, { ...attempt, meant }, context.receipt);
  return end;
}

/** Makes the change that the answer asks for, or says what a model that drew by itself had before it. */
async function endWithPictures(
  dependencies: TurnDependencies,
  turn: Turn,
  { answer, meant, lead, receipt }: Attempt & { readonly meant: MeantPictures },
  { images = 0 }: ReceiptContext,
): Promise<void> {
  const asked = parseAskedChange(answer.text, meant);
  if (asked !== undefined) return changeMeantPicture(dependencies, turn, { asked, lead, receipt }, answer);
  if (mayAskForChange(answer.text) && answer.text !== "") turn.reply.write({ lead, text: answer.text });
  const last = meant.pictures.at(-1);
  if (images > 0 && answer.images.length > 0 && last !== undefined)
    answer.notices.push(lastShownNotice(last.named));
}

/** The pictures that may be meant, where one of them could be changed. */
async function findMeant(
  dependencies: TurnDependencies,
  { conversationId, messages, signal }: Turn,
  history: readonly StoredMessage[],
  { lastPicture }: ConversationSettings,
): Promise<MeantPictures | undefined> {
  const repliesTo = messages.findLast((message) => message.repliesTo !== undefined)?.repliesTo?.key;
  const known = { history, lastPicture, repliesTo };
  const meant = await findMeantPictures(dependencies.conversations, conversationId, known);
  return meant !== undefined && (await canChangePictures(dependencies, signal)) ? meant : undefined;
}

/** Memory that the pictures of a prompt take, in bytes: as base64, in the request's JSON, and in its encoded body. */
function imageBytesOf(history: readonly StoredMessage[]): number {
  const sizes = history
    .flatMap((message) => message.parts)
    .flatMap((part) => (part.kind === "image" ? [part.blob.sizeBytes] : []));
  return Math.ceil(sizes.slice(-maxImages).reduce((sum, size) => sum + size, 0) * (4 / 3) * 3);
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
