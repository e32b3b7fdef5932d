import { streamAnswer, type AnswerEnd, type AnswerSoFar } from "./stream-answer.ts";
import { readAttachments } from "./attachments.ts";
import { budgetFor, buildContext, type createTokenFactors } from "./context-window.ts";
import { isParleyError } from "../../core/errors.ts";
import type { ModelChoice } from "./model-choice.ts";
import { endedEarlyNotice, isWorthRetrying, toNotice, unreadNotice } from "../../core/error-messages.ts";
import { estimatePartsTokens, messageIds, textOf, withoutRetriedAttempts } from "./stored-messages.ts";
import type {
  Archive,
  ConversationQueue,
  Conversations,
  ConversationSettings,
  MessagePart,
  StoredMessage,
} from "../../core/storage.ts";
import type { Gateway, TranscriptionAnswer } from "../../core/gateway.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import type { Platform, Reply } from "../../core/platform.ts";

/** Most messages of a conversation that are looked at for one answer. */
const maxHistory = 200;

/** What every turn works with. */
export interface TurnRoom {
  readonly gateway: Gateway;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly models: ModelChoice;
  readonly factors: ReturnType<typeof createTokenFactors>;
  readonly meter: Meter;
  readonly log: Log;
  readonly chat: { readonly maxTokens: number; readonly temperature: number; readonly systemPrompt: string };
  readonly now: () => number;
}

/** One turn: whom it answers, where, and in which attempt. */
export interface Turn {
  /** Key of its first event. */
  readonly key: string;
  /** 1 for the first run; each retry or restart counts one more. */
  readonly attempt: number;
  readonly platform: Platform;
  readonly conversationId: string;
  readonly messages: readonly IncomingMessage[];
  readonly reply: Reply;
  /** Stands before the answer: the question, where people do not see it otherwise. */
  readonly lead: string;
  readonly model: string | undefined;
  readonly signal: AbortSignal;
  /** Keys of the platform's messages that show the reply, as far as there are any yet. */
  shownMessageKeys(): readonly string[];
}

/** How a turn ended. `failed` and `interrupted` have been shown to the person. */
export type TurnOutcome = "complete" | "interrupted" | "failed" | "cancelled";

/**
 * Runs a turn from message to shown answer. Everything that goes wrong is shown in the reply, with a Retry
 * where it makes sense; only `stopping` is thrown, so that the turn stays open for the next start.
 */
export async function runTurn(room: TurnRoom, turn: Turn): Promise<TurnOutcome> {
  const startedAt = performance.now();
  const soFar: AnswerSoFar = { text: "", images: [], notices: [] };
  const shown = turn.reply.show();
  // Awaited below and in `streamAnswer`; this keeps an early failure from counting as unhandled meanwhile.
  void Promise.allSettled([shown]);
  let lead = turn.lead;
  try {
    const said = await listen(room, turn);
    lead = [turn.lead, toLead(said.parts)].filter((part) => part !== "").join("\n\n");
    soFar.notices.push(...said.notices);
    if (!isAnswerable(said.parts)) {
      await shown;
      return await giveUp(room, turn, soFar, "There was nothing in it that Parley can read.");
    }
    const end = await ask(room, turn, { said, soFar, shown, lead, startedAt });
    if (end.reason !== "stop") soFar.notices.push(endedEarlyNotice(end.reason));
    throwIfLeft(turn.signal);
    await keepAnswer(room, turn, soFar, "complete", end);
    // A process that was paused learns of it at the latest while it waits for the store.
    throwIfLeft(turn.signal);
    await turn.reply.finish({ notices: soFar.notices });
    await keepPlace(room, turn, end.settings);
    return "complete";
  } catch (error) {
    return await concludeFailure(room, turn, { error, soFar, lead, shown });
  }
}

interface Said {
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  readonly stored: readonly StoredMessage[];
}

/** Reads the messages' files and keeps the messages, unless an earlier attempt has. */
async function listen(room: TurnRoom, turn: Turn): Promise<Said> {
  const stored: StoredMessage[] = [];
  const notices: string[] = [];
  for (const message of turn.messages) {
    const id = messageIds.user(message.key);
    const known = turn.attempt > 1 ? await room.conversations.find(turn.conversationId, id) : undefined;
    if (known !== undefined) {
      stored.push(known);
      continue;
    }
    const read = await readAttachments(
      message.attachments,
      {
        download: (attachment, options) => turn.platform.download(attachment, options),
        transcribe: (request, signal) => transcribe(room, request, undefined, signal),
        conversations: room.conversations,
        conversationId: turn.conversationId,
        status: (text) => {
          turn.reply.status(text);
        },
      },
      turn.signal,
    );
    const parts: MessagePart[] = [
      ...(message.text === "" ? [] : [{ kind: "text" as const, text: message.text }]),
      ...read.parts,
    ];
    const kept: StoredMessage = {
      id,
      role: "user",
      author: message.author,
      parts,
      createdAt: message.sentAt,
      estimatedTokens: estimatePartsTokens(parts),
    };
    await room.conversations.append(turn.conversationId, kept);
    stored.push(kept);
    notices.push(...read.notices);
  }
  const parts = stored.flatMap((message) => message.parts);
  for (const part of parts) if (part.kind === "unread") notices.push(unreadNotice(part.name, part.reason));
  return { parts, notices, stored };
}

/** One transcription, with the model chosen and the call metered. */
export async function transcribe(
  room: Pick<TurnRoom, "gateway" | "models" | "meter">,
  request: Omit<Parameters<Gateway["transcribe"]>[0], "model">,
  model: string | undefined,
  signal: AbortSignal,
): Promise<TranscriptionAnswer> {
  const chosen = await room.models.choose("transcription", model, signal);
  const answer = await room.gateway.transcribe({ ...request, model: chosen }, signal);
  room.meter.call({ operation: "transcription", outcome: "complete", model: answer.model }, answer.usage);
  return answer;
}

function isAnswerable(parts: readonly MessagePart[]): boolean {
  return parts.some((part) => part.kind !== "unread");
}

/** Voice is shown as words before the answer, so that a mishearing is seen. */
function toLead(parts: readonly MessagePart[]): string {
  return parts.flatMap((part) => (part.kind === "voice" ? [quote(`🎙️ ${part.text}`)] : [])).join("\n\n");
}

/** Markdown block quote of a text. */
export function quote(text: string): string {
  return text
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");
}

interface Asking {
  readonly said: Said;
  readonly soFar: AnswerSoFar;
  readonly shown: Promise<void>;
  readonly lead: string;
  readonly startedAt: number;
}

interface Asked extends AnswerEnd {
  /** As they were when it was asked. */
  readonly settings: ConversationSettings;
}

async function ask(room: TurnRoom, turn: Turn, asking: Asking): Promise<Asked> {
  const { conversations } = room;
  const [settings, log] = await Promise.all([
    conversations.settings(turn.conversationId),
    conversations.recent(turn.conversationId, { maxMessages: maxHistory + 1 }),
  ]);
  const model = await room.models.choose("chat", turn.model ?? settings.model, turn.signal);
  const known = room.models.find(model);
  const history = upToTurn(withoutRetriedAttempts(afterReset(log, settings.resetAfter)), asking.said.stored);
  const run = async (shrink: number): Promise<AnswerEnd> => {
    const context = await buildContext({
      history: history.slice(-maxHistory),
      hasOlder: history.length > maxHistory,
      systemPrompt: room.chat.systemPrompt,
      budgetTokens: budgetFor(known?.contextLength, room.chat.maxTokens, room.factors.of(model)) * shrink,
      seesImages: known?.capabilities.seesImages,
      getBlob: (hash) => conversations.getBlob(turn.conversationId, hash),
    });
    const end = await streamAnswer(
      {
        gateway: room.gateway,
        request: {
          model,
          messages: context.messages,
          maxTokens: room.chat.maxTokens,
          temperature: room.chat.temperature,
          stream: true,
        },
        reply: turn.reply,
        shown: asking.shown,
        lead: asking.lead,
        conversations,
        conversationId: turn.conversationId,
        altText: textOf(asking.said.parts),
        onFirstText: () => {
          room.meter.firstText({ platform: turn.platform.id }, (performance.now() - asking.startedAt) / 1000);
        },
      },
      asking.soFar,
      turn.signal,
    );
    asking.soFar.notices.push(...context.notices);
    room.factors.learn(model, context.estimatedTokens, end.usage.promptTokens);
    room.meter.call({ operation: "chat", outcome: end.reason, model: end.model }, end.usage);
    return end;
  };
  try {
    return { ...(await run(1)), settings };
  } catch (error) {
    if (!isParleyError(error, "gateway-context-length") || asking.soFar.text !== "") throw error;
    return { ...(await run(0.4)), settings };
  }
}

/** Once a conversation, after its first answer: nobody waits for it. */
async function keepPlace(room: TurnRoom, turn: Turn, settings: ConversationSettings): Promise<void> {
  const within = turn.messages[0]?.within;
  if (within === undefined || settings.within !== undefined) return;
  try {
    await room.conversations.saveSettings(turn.conversationId, { within });
  } catch (error) {
    room.log.warn({ turn: turn.key, err: error }, "where a conversation lies is kept after its next answer");
  }
}

/** What was said since `/reset`; where that lies further back than the log at hand, all of it. */
function afterReset(log: readonly StoredMessage[], resetAfter: string | undefined): readonly StoredMessage[] {
  return log.slice(log.findIndex((message) => message.id === resetAfter) + 1);
}

/** The log up to this turn's own messages: what was said after them belongs to the next turn. */
function upToTurn(log: readonly StoredMessage[], own: readonly StoredMessage[]): readonly StoredMessage[] {
  const lastId = own.at(-1)?.id;
  const end = log.findIndex((message) => message.id === lastId);
  return end === -1 ? [...log, ...own] : log.slice(0, end + 1);
}

/** Throws `stopping` where the turn is left to another process or the next start; a person's cancel passes. */
export function throwIfLeft(signal: AbortSignal): void {
  if (signal.aborted && isParleyError(signal.reason, "stopping")) throw signal.reason;
}

/** Keeps what was answered. */
async function keepAnswer(
  room: TurnRoom,
  turn: Turn,
  soFar: AnswerSoFar,
  outcome: NonNullable<StoredMessage["outcome"]>,
  end?: AnswerEnd,
): Promise<void> {
  const parts: MessagePart[] = [
    ...(soFar.text === "" ? [] : [{ kind: "text" as const, text: soFar.text }]),
    ...soFar.images,
  ];
  const shownAs = turn.shownMessageKeys();
  await room.conversations.append(turn.conversationId, {
    id: messageIds.assistant(turn.key, turn.attempt),
    role: "assistant",
    parts,
    createdAt: room.now(),
    estimatedTokens: estimatePartsTokens(parts),
    outcome,
    notices: soFar.notices,
    ...(shownAs.length === 0 ? {} : { shownAs }),
    ...(end === undefined ? {} : { model: end.model, usage: end.usage }),
  });
}

async function giveUp(room: TurnRoom, turn: Turn, soFar: AnswerSoFar, text: string): Promise<TurnOutcome> {
  await keepAnswer(room, turn, { ...soFar, notices: [...soFar.notices, text] }, "failed");
  await turn.reply.fail({ text, notices: soFar.notices });
  return "failed";
}

interface Failure {
  readonly error: unknown;
  readonly soFar: AnswerSoFar;
  readonly lead: string;
  readonly shown: Promise<void>;
}

async function concludeFailure(room: TurnRoom, turn: Turn, failure: Failure): Promise<TurnOutcome> {
  const { error, soFar } = failure;
  if (isParleyError(error, "stopping")) throw error;
  throwIfLeft(turn.signal);
  const isCancelled = isParleyError(error, "cancelled");
  const outcome: TurnOutcome = isCancelled
    ? "cancelled"
    : soFar.text === "" && soFar.images.length === 0
      ? "failed"
      : "interrupted";
  if (!isCancelled) {
    room.log.warn({ turn: turn.key, err: error, outcome }, "a turn did not end well");
    room.meter.call(
      { operation: "chat", outcome: isParleyError(error) ? error.code : "internal", model: "" },
      { isEstimated: true },
    );
  }
  const text = toNotice(error);
  const kept = { ...soFar, notices: [...soFar.notices, text] };
  let keepNotices: readonly string[] = soFar.notices;
  try {
    await keepAnswer(room, turn, kept, outcome === "failed" ? "failed" : "interrupted");
  } catch (storeError) {
    room.log.error({ turn: turn.key, err: storeError }, "an unfinished answer could not be kept");
    keepNotices = [...soFar.notices, toNotice(storeError)];
  }
  await failure.shown;
  if (soFar.text !== "") turn.reply.write({ lead: failure.lead, text: soFar.text });
  if (isCancelled) {
    await turn.reply.finish({ notices: [...keepNotices, text] });
    return outcome;
  }
  await turn.reply.fail({
    text,
    notices: keepNotices,
    ...(isWorthRetrying(error) ? { retryKey: turn.key } : {}),
  });
  // Said, and tried again by itself once there is a store: it may be back before this turn could be closed.
  if (isParleyError(error, "store-unavailable")) throw error;
  return outcome;
}
