import { isDeepStrictEqual } from "node:util";
import { shortened, changedFromNotice, lastShownNotice } from "../../core/error-messages.ts";
import { isParleyError, type ParleyError } from "../../core/errors.ts";
import type { ReceiptContext } from "../../core/receipt.ts";
import {
  type Conversations,
  type MessagePart,
  type StoredMessage,
  type ConversationSettings,
  charsOf,
  maxRecentChars,
} from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { budgetFor, buildContext, defaultContextLength, maxImages } from "./context-window.ts";
import { textOfAnswer, toContinuationRequest, createJoiner } from "./continued-answer.ts";
import { causeOf, type HowToAsk, lessThan, mayTakeLess, type SentRequest } from "./refusals.ts";
import type { readMessages } from "./read-messages.ts";
import type { ReceiptDraft, Turn, TurnDependencies } from "./turn.ts";
import {
  requestChange,
  pictureOf,
  picturePartsOf,
  type TakenPicture,
  afterReset,
  hasPictures,
  textOf,
  withoutRetriedAttempts,
} from "./stored-messages.ts";
import {
  hasContent,
  keepPicture,
  type PartialAnswer,
  streamAnswer,
  type AnswerEnd,
} from "./stream-answer.ts";
import { summaryTokensFor } from "./sum-up.ts";

/** How many messages of a conversation are considered for an answer. */
export const maxHistory = 200;

interface Question {
  readonly read: Awaited<ReturnType<typeof readMessages>>;
  /** Markdown before the answer, or an empty text. */
  readonly lead: string;
  /** Resolves when the reply has begun and its address is saved. */
  readonly shown: Promise<void>;
  readonly receipt: ReceiptDraft;
  /** The answer that is to be continued. */
  readonly continued: StoredMessage | undefined;
}

/**
 * Asks the model with as much of the conversation as fits, and streams its answer into the reply and into
 * `answer`. A prompt that the gateway refuses as too long is shortened and sent once more.
 * @throws ParleyError as {@link streamAnswer} does
 */
export async function askModel(
  dependencies: TurnDependencies,
  turn: Turn,
  question: Question,
  answer: PartialAnswer,
): Promise<AnswerEnd> {
  const { conversations } = dependencies;
  const { settings } = turn;
  const log = await conversations.recent(turn.conversationId, { maxMessages: maxHistory + 1 });
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
  if (instead !== undefined) answer.notices.push(translate("notice.other-model", { model: chosen, instead }));
  const meant = await findMeant(dependencies, turn, history, settings);
  const ask = (how: HowToAsk, isWorthSending: Attempt["isWorthSending"]) =>
    askOnce(dependencies, turn, {
      ...question,
      answer,
      model,
      history,
      resetAfter: settings.resetAfter,
      meant,
      how,
      isWorthSending,
    });
  return await askTolerantly(dependencies, turn, { answer, model, history, own: question.read.parts }, ask);
}

/**
 * Asks, and where the model refuses the request, asks again with less until it answers. What it refused in
 * this conversation is remembered.
 */
async function askTolerantly(
  { admitBytes, refusals }: TurnDependencies,
  { conversationId, signal }: Turn,
  {
    answer,
    model,
    history,
    own,
  }: Pick<Attempt, "answer" | "model" | "history"> & { readonly own: readonly MessagePart[] },
  ask: (how: HowToAsk, isWorthSending: Attempt["isWorthSending"]) => Promise<AnswerEnd | undefined>,
): Promise<AnswerEnd> {
  const known = refusals.of(model, conversationId);
  const sent: SentRequest[] = [];
  const attempt = async (how: HowToAsk, mayRepeat: boolean): Promise<AnswerEnd | undefined> => {
    const release = await admitBytes(imageBytesOf(history), signal);
    try {
      return await ask(how, (contents) => {
        const isNew = !sent.some((one) => isDeepStrictEqual(one, contents));
        if (isNew || mayRepeat) sent.push(contents);
        return isNew || mayRepeat;
      });
    } finally {
      release();
    }
  };
  try {
    const end = await attempt({ tolerance: known, isLean: false }, true);
    if (end !== undefined) return end;
    throw new Error("a request was not sent");
  } catch (error) {
    const [first] = sent;
    const isRefusal = (one: unknown): one is ParleyError =>
      first !== undefined && isParleyError(one) && mayTakeLess(one, first) && !hasContent(answer);
    if (!isRefusal(error) || first === undefined) throw error;
    const pictures = picturePartsOf({ parts: own }).length;
    for (const how of lessThan(first, error, known, pictures)) {
      const end = await attempt(how, how.tolerance === known).catch((again: unknown) => {
        if (!isRefusal(again)) throw again;
        return undefined;
      });
      const taken = sent.at(-1);
      if (end === undefined || taken === undefined) continue;
      const refused = [first, ...sent.slice(1, -1)] as const;
      const cause = causeOf({ error, refused, taken });
      refusals.learn(model, conversationId, { error, refused, taken });
      // Notices of what was left out already explain pictures, and a length that the gateway has named.
      if (how.isLean && cause !== "pictures" && error.code !== "gateway-context-length")
        answer.notices.push(translate(`notice.sent-less.${cause}`));
      return end;
    }
    // The first error is about the request that people meant.
    throw error;
  }
}

interface Attempt extends Question {
  readonly answer: PartialAnswer;
  readonly model: string;
  readonly history: readonly StoredMessage[];
  /** {@link ConversationSettings.resetAfter}, which cuts off the beginning of the conversation. */
  readonly resetAfter: string | undefined;
  readonly meant: MeantPictures | undefined;
  readonly how: HowToAsk;
  /** Called with the contents of the request before it is sent. If it returns false, nothing is sent. */
  readonly isWorthSending: (contents: SentRequest) => boolean;
}

async function askOnce(
  dependencies: TurnDependencies,
  turn: Turn,
  attempt: Attempt,
): Promise<AnswerEnd | undefined> {
  const { conversations, chat, factors, meter, models, sumUp } = dependencies;
  const { model, history, meant, answer, receipt } = attempt;
  const known = models.find(model);
  const contextLength = attempt.how.tolerance.contextLength ?? known?.contextLength ?? defaultContextLength;
  const factor = factors.of(model);
  const maxTokens = summaryTokensFor(contextLength);
  const maxEstimated = Math.floor(maxTokens / factor);
  const context = await buildContext({
    history: history.slice(-maxHistory),
    hasOlder: history.length > maxHistory || charsOf(history) > maxRecentChars,
    systemPrompt: [chat.systemPrompt, meant?.note ?? ""].filter((text) => text !== "").join("\n\n"),
    budgetTokens: budgetFor(contextLength, chat.maxTokens, factor),
    ...attempt.how,
    seesImages: known?.capabilities.seesImages,
    opening: () =>
      attempt.resetAfter !== undefined
        ? undefined
        : conversations.find(turn.conversationId, { isFirst: true }),
    memory: sumUp && {
      maxTokens: maxEstimated,
      async sumUp(before, ahead, budgetTokens) {
        // What this turn asks is found by its position in the log.
        await attempt.read.whenStored;
        const { resetAfter } = attempt;
        return await sumUp(dependencies, turn, {
          model,
          resetAfter,
          before,
          ahead,
          maxTokens,
          maxEstimated,
          budgetTokens,
          receipt,
        });
      },
    },
    personId: dependencies.personId,
    getBlob: (hash) => conversations.getBlob(turn.conversationId, hash),
  });
  if (!attempt.isWorthSending(context.contents)) return undefined;
  receipt.asks("chat", model);
  receipt.sends(context.receipt, chat);
  const end = await streamAnswer(
    {
      gateway: dependencies.gateway,
      request: {
        model,
        messages: context.messages,
        maxTokens: maxTokensFor(attempt.continued, chat.maxTokens),
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
        meter({ kind: "first-text", platform: turn.platform.id, seconds: receipt.firstText() / 1000 });
      },
    },
    answer,
    turn.signal,
  );
  receipt.answered(end);
  answer.notices.push(...context.notices);
  factors.learn(model, context.estimatedTokens, end.usage.promptTokens);
  if (meant !== undefined) await endWithPictures(dependencies, turn, { ...attempt, meant }, context.receipt);
  return end;
}

/** How many times more tokens an answer gets if the first attempt had only thoughts. */
const thinkingFactor = 4;

function maxTokensFor(continued: StoredMessage | undefined, maxTokens: number): number {
  return continued !== undefined && textOfAnswer(continued) === "" ? maxTokens * thinkingFactor : maxTokens;
}

/** Makes the change that the answer asks for, or notes the last picture seen by a model that drew unasked. */
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

/** The pictures that may be meant, if one of them can be changed. */
async function findMeant(
  dependencies: TurnDependencies,
  { conversationId, messages, signal }: Turn,
  history: readonly StoredMessage[],
  { lastPicture }: ConversationSettings,
): Promise<MeantPictures | undefined> {
  const repliesTo = messages.findLast((message) => message.repliesTo !== undefined)?.repliesTo?.key;
  // Whoever may not see what was said before may not see its pictures either.
  const older = dependencies.withheld === undefined ? lastPicture : undefined;
  const known = { history, lastPicture: older, repliesTo };
  const meant = await findMeantPictures(dependencies.conversations, conversationId, known);
  return meant !== undefined && (await canChangePictures(dependencies, signal)) ? meant : undefined;
}

/** The bytes of memory for a prompt's pictures: as base64, in the request's JSON and in its encoded body. */
function imageBytesOf(history: readonly StoredMessage[]): number {
  const sizes = history
    .flatMap((message) => message.parts)
    .flatMap((part) => (part.kind === "image" ? [part.blob.sizeBytes] : []));
  return Math.ceil(sizes.slice(-maxImages).reduce((sum, size) => sum + size, 0) * (4 / 3) * 3);
}

/**
 * The log up to the turn's own messages, because later ones belong to the next turn. The turn's own messages
 * come last and in their order: some may be still being stored, and after an outage they are stored in
 * another one.
 */
function upToTurn(log: readonly StoredMessage[], own: readonly StoredMessage[]): readonly StoredMessage[] {
  const ownIds = new Set(own.map(({ id }) => id));
  const end = log.findLastIndex(({ id }) => ownIds.has(id));
  const until = end === -1 ? log : log.slice(0, end + 1);
  const stored = new Map(log.map((message) => [message.id, message]));
  return [
    ...until.filter(({ id }) => !ownIds.has(id)),
    ...own.map((message) => stored.get(message.id) ?? message),
  ];
}

/** A change is stored, for repetition, under the name of the command that makes changes. */
const drawCommand = "imagine";

/** Whether a known model can change pictures. Notices about models follow when one is asked. */
async function canChangePictures(
  { models }: Pick<TurnDependencies, "models">,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await models.choose("image-edit", undefined, signal);
    return true;
  } catch (error) {
    if (!isParleyError(error)) throw error;
    return false;
  } finally {
    models.takeNotices();
  }
}

/**
 * Makes the change that the chat model has asked for, in place of its answer.
 * @throws ParleyError as {@link requestChange} does
 */
async function changeMeantPicture(
  dependencies: TurnDependencies,
  turn: Turn,
  {
    asked,
    lead,
    receipt,
  }: { readonly asked: AskedChange; readonly lead: string; readonly receipt: ReceiptDraft },
  answer: PartialAnswer,
): Promise<void> {
  const { conversations, models } = dependencies;
  const { conversationId, reply, signal } = turn;
  const { instruction, picture } = asked;
  const { part, named, messageId } = picture;
  answer.text = "";
  reply.status(translate("status.changing-picture"));
  const model = await models.choose("image-edit", undefined, signal);
  answer.notices.push(...models.takeNotices());
  const request = { model, prompt: instruction, part, conversationId };
  const changed = await requestChange(dependencies, request, receipt, signal);
  const kept = { conversations, conversationId, altText: instruction };
  for (const image of changed.images) await keepPicture(kept, answer, image);
  answer.text = changed.text;
  const hasPicture = changed.images.length > 0;
  answer.notices.push(
    ...changed.notices,
    hasPicture ? changedFromNotice(named) : translate("drawn.only-words"),
  );
  if (hasPicture) {
    const pictures = [{ conversationId, messageId, number: named.number }];
    answer.call = { name: drawCommand, options: { prompt: instruction }, pictures };
  }
  reply.write({ lead, text: answer.text });
}

/** How many pictures a model is told about, newest first. */
const maxListed = 8;
/** The longest instruction for a change, in characters. */
const maxInstructionChars = 4000;

const tag = "change_picture";
const whole = new RegExp(`^\\s*<${tag} number="(\\d{1,3})">([\\s\\S]{1,${maxInstructionChars}})</${tag}>`);

/** Pictures of a conversation that a request may mean, in the order of their numbers from 1. */
interface MeantPictures {
  readonly pictures: readonly TakenPicture[];
  /** Tells the model about the pictures and how to ask for a change of one. */
  readonly note: string;
}

interface AskedChange {
  readonly picture: TakenPicture;
  readonly instruction: string;
}

/**
 * Finds the pictures that may be meant: the newest of the history, the last one of the conversation if that
 * is older, and those of the message that the person replies to, which come last.
 * @throws ParleyError `store-unavailable`
 */
export async function findMeantPictures(
  conversations: Pick<Conversations, "find">,
  conversationId: string,
  known: {
    /** The history, oldest first. */
    readonly history: readonly StoredMessage[];
    /** The value of {@link ConversationSettings.lastPicture}. */
    readonly lastPicture: string | undefined;
    /** A key of {@link StoredMessage.shownAs}. */
    readonly repliesTo: string | undefined;
  },
): Promise<MeantPictures | undefined> {
  const { history, lastPicture, repliesTo } = known;
  const usable = history.filter(({ inContext, outcome }) => inContext !== false && outcome !== "failed");
  const replied =
    repliesTo === undefined ? undefined : usable.find(({ shownAs }) => shownAs?.includes(repliesTo));
  let others = usable.filter((message) => message !== replied && picturePartsOf(message).length > 0);
  if (others.length === 0 && lastPicture !== undefined && lastPicture !== replied?.id) {
    const older = await conversations.find(conversationId, lastPicture);
    if (older !== undefined) others = [older];
  }
  const meant = replied === undefined ? [] : toPictures(replied);
  const room = Math.max(0, maxListed - meant.length);
  const pictures = [...(room === 0 ? [] : others.flatMap(toPictures).slice(-room)), ...meant];
  return pictures.length === 0 ? undefined : { pictures, note: toNote(pictures, meant.length) };
}

function toPictures(message: StoredMessage): TakenPicture[] {
  return picturePartsOf(message).flatMap((_, index) => pictureOf(message, index + 1) ?? []);
}

function toNote(pictures: readonly TakenPicture[], replied: number): string {
  const lines = pictures.map(({ named: { number, of, prompt } }, index) => {
    return `${index + 1}: ${JSON.stringify(shortened(prompt))}${of === 1 ? "" : ` (picture ${number} of ${of} in its message)`}`;
  });
  const first = pictures.length - replied + 1;
  const which = replied === 1 ? `picture ${first}` : `pictures ${first} to ${pictures.length}`;
  return [
    "Pictures in this conversation, oldest first, by number:",
    ...lines,
    ...(replied === 0 ? [] : [`The person replies to the message with ${which}.`]),
    "If the person asks you to change one of these pictures, or for a version of it, answer with this line alone:",
    `<${tag} number="${pictures.length}">the change, as an instruction</${tag}>`,
    "Use the number of the picture that the person replies to or names; otherwise the last number. The picture is then changed for you and shown. Never write this line for anything else.",
  ].join("\n");
}

/** Whether a partial answer may become a request for a change. It is not shown until that is known. */
export function mayAskForChange(text: string): boolean {
  const start = text.trimStart();
  const opening = `<${tag} `;
  return start.length < opening.length ? opening.startsWith(start) : start.startsWith(opening);
}

/** The change that a whole answer asks for. An unlisted number stands for the last picture. */
export function parseAskedChange(text: string, { pictures }: MeantPictures): AskedChange | undefined {
  const [, number = "", instruction = ""] = whole.exec(text) ?? [];
  const picture = pictures[Number(number) - 1] ?? pictures.at(-1);
  return instruction.trim() === "" || picture === undefined
    ? undefined
    : { picture, instruction: instruction.trim() };
}
