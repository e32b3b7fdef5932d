import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, isWorthRetrying } from "../../core/errors.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import {
  throwIfAbandoned,
  type Turn,
  type TurnDependencies,
  type TurnOutcome,
  createReceiptDraft,
  type ReceiptDraft,
} from "./turn.ts";
import { askModel } from "./ask-model.ts";
import { joinSources } from "../../core/sources.ts";
import {
  addReceipt,
  addUsage,
  textOfAnswer,
  findEarlier,
  keepsEarlier,
  showEarlier,
  showEnd,
  showStored,
} from "./continued-answer.ts";
import {
  keepAnswer,
  messageIds,
  toAnswerMessage,
  toEnding,
  showPictures,
  noteLastPicture,
} from "./stored-messages.ts";
import { attachTranscripts } from "./transcribe-recording.ts";
import { readMessages } from "./read-messages.ts";
import { hasContent, type AnswerEnd, type PartialAnswer } from "./stream-answer.ts";
import { translate } from "../../words/translate.ts";

/**
 * Runs a turn from its messages to the visible answer. The reply shows failures, with Retry if that may help.
 * @throws ParleyError `stopping` and `store-unavailable`, so that the turn stays open for recovery
 */
export async function runTurn(dependencies: TurnDependencies, turn: Turn): Promise<TurnOutcome> {
  const answer: PartialAnswer = { text: "", images: [], notices: [] };
  const receipt = createReceiptDraft();
  const continued = turn.redo?.kind === "continue" ? await findEarlier(dependencies, turn) : undefined;
  const showBefore = (before: string): void => {
    if (continued !== undefined) turn.reply.write({ lead: before, text: textOfAnswer(continued) });
  };
  let { lead } = turn;
  // Text stays where it is. A reply without text shows that another answer is coming.
  showBefore(lead);
  const shown = turn.reply.show();
  // It is awaited below and in `streamAnswer`. Until then a rejection must not count as unhandled.
  void Promise.allSettled([shown]);
  let isStored = false;
  turn.offerSoFar((why) => {
    if (answer.isHeldBack === true || isStored || !hasContent(answer)) return undefined;
    const notices = [...answer.notices, why];
    const result = { outcome: "interrupted", receipt, isStopped: true, continued } as const;
    return { message: toAnswer(dependencies, turn, { ...answer, notices }, result), lead };
  });
  try {
    const read = await readMessages(dependencies, turn);
    lead = [turn.lead, read.quoted].filter((part) => part !== "").join("\n\n");
    showBefore(lead);
    answer.notices.push(...read.notices);
    // What an earlier attempt attached is still there.
    if (read.files.length > 0 && (turn.redo === undefined || turn.redo.kind === "edit")) {
      await Promise.all([shown, read.whenStored]);
      answer.notices.push(...(await attachTranscripts(turn.reply, read.files, turn.signal)));
    }
    receipt.add(read.calls);
    receipt.reads(read.stored);
    if (turn.refusal !== undefined) {
      await read.whenStored;
      throw turn.refusal;
    }
    if (read.parts.every(({ kind }) => kind === "unread")) {
      await Promise.all([shown, read.whenStored]);
      return await refuse(dependencies, turn, answer);
    }
    const question = { read, lead, shown, receipt, continued };
    const end = await askModel(dependencies, turn, question, answer);
    // If the model reached a limit while it thought, the gateway's client says so.
    if (end.reason !== "stop" && answer.text !== "")
      answer.notices.push(translate(`notice.ended.${end.reason}`));
    throwIfAbandoned(turn.signal);
    const [stored] = await Promise.all([
      storeAnswer(dependencies, turn, answer, { outcome: "complete", end, receipt, continued }),
      end.whenSettled,
    ]);
    // Here at the latest, a process that was paused learns that another one has resumed the turn.
    throwIfAbandoned(turn.signal);
    isStored = true;
    if (stored === "duplicate") await showOthers(dependencies, turn, { lead, answer });
    else await showEnd(dependencies, turn, stored, answer.notices);
    return "complete";
  } catch (error) {
    const failure = { error, answer, receipt, lead, shown, continued, isStored };
    return await concludeFailure(dependencies, turn, failure);
  }
}

/**
 * Shows the stored answer of an earlier attempt, whose process had lost the conversation and stored its
 * answer while this one asked.
 */
async function showOthers(
  dependencies: TurnDependencies,
  turn: Turn,
  { lead, answer }: { readonly lead: string; readonly answer: PartialAnswer },
): Promise<void> {
  const { conversations, log } = dependencies;
  const stored = await conversations.find(turn.conversationId, messageIds.complete(turn.key));
  log.info({ attempt: turn.attempt }, "another attempt has stored its answer");
  if (stored !== undefined) await showStored(dependencies, { ...turn, lead }, stored);
  // Its author has removed it in the meantime.
  else await turn.reply.finish({ notices: answer.notices });
}

async function refuse(
  dependencies: TurnDependencies,
  turn: Turn,
  answer: PartialAnswer,
): Promise<TurnOutcome> {
  const failure = translate("turn.nothing-readable");
  await storeAnswer(dependencies, turn, answer, { outcome: "failed", failure });
  await turn.reply.fail({ text: failure, notices: answer.notices });
  return "failed";
}

interface AnswerResult {
  /** Whether a person has stopped it, so that this is the answer of the turn. */
  readonly isStopped?: boolean;
  readonly outcome: NonNullable<StoredMessage["outcome"]>;
  readonly failure?: string;
  readonly end?: AnswerEnd;
  readonly receipt?: ReceiptDraft;
  /** The answer that this continues. The two become one. */
  readonly continued?: StoredMessage | undefined;
}

/** The answer in the form in which it is stored. */
function toAnswer(
  dependencies: TurnDependencies,
  turn: Turn,
  answer: PartialAnswer,
  { outcome, failure, end, receipt: draft, isStopped = false, continued }: AnswerResult,
): StoredMessage {
  const isFinal = isStopped || turn.redo !== undefined;
  const text: MessagePart[] = answer.text === "" ? [] : [{ kind: "text", text: answer.text }];
  const isLeft = end === undefined && outcome === "interrupted";
  const broken = isLeft ? draft?.left(dependencies.gateway.usageIfLeft()) : undefined;
  const model = end?.model ?? (isStopped ? broken : undefined);
  const images = continued?.parts.filter(({ kind }) => kind === "image") ?? [];
  const parts = [...text, ...images, ...answer.images];
  const receipt = addReceipt(continued?.receipt, draft?.toReceipt());
  const usage = addUsage(continued?.usage, end?.usage);
  const sources = joinSources(continued?.sources, end?.sources);
  const thoughts = [continued?.thoughts, answer.thoughts?.trim()].filter((one) => one).join("\n\n");
  return toAnswerMessage(turn, dependencies.now(), {
    ...(isFinal ? { id: messageIds.complete(turn.key) } : {}),
    parts,
    outcome,
    notices: answer.notices,
    ...(thoughts === "" ? {} : { thoughts }),
    ...(sources.length === 0 ? {} : { sources }),
    ...(answer.call === undefined ? {} : { call: answer.call }),
    ...(failure === undefined ? {} : { failure }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(end?.reason === "length" || ((failure !== undefined || isStopped) && text.length > 0)
      ? { isCut: true }
      : {}),
    ...(receipt === undefined ? {} : { receipt }),
  });
}

async function storeAnswer(
  dependencies: TurnDependencies,
  turn: Turn,
  answer: PartialAnswer,
  how: AnswerResult,
): Promise<StoredMessage | "duplicate"> {
  const message = toAnswer(dependencies, turn, answer, how);
  const result = await keepAnswer(dependencies, turn, message, { within: turn.messages[0]?.within });
  await noteLastPicture(dependencies.conversations, turn.conversationId, message);
  return result === "duplicate" ? result : message;
}

interface Failure {
  readonly error: unknown;
  readonly answer: PartialAnswer;
  readonly receipt: ReceiptDraft;
  readonly lead: string;
  readonly shown: Promise<void>;
  readonly continued: StoredMessage | undefined;
  /** Whether the whole answer is stored, so that only showing it has failed. */
  readonly isStored: boolean;
}

async function concludeFailure(
  dependencies: TurnDependencies,
  turn: Turn,
  failure: Failure,
): Promise<TurnOutcome> {
  const { error, answer, receipt, lead } = failure;
  const { log } = dependencies;
  if (isParleyError(error, "stopping")) throw error;
  throwIfAbandoned(turn.signal);
  const isCancelled = isParleyError(error, "cancelled");
  const ending = hasContent(answer) ? "interrupted" : "failed";
  const outcome = isCancelled ? "cancelled" : ending;
  if (!isCancelled) log.warn({ err: error, outcome }, "turn failed");
  const text = toNotice(error);
  const notices = [...answer.notices];
  // The turn stays open and runs again. Its question may not be stored yet, and must come first.
  const isOutage = isParleyError(error, "store-unavailable");
  const isNothing = isOutage && (outcome === "failed" || keepsEarlier(turn.redo));
  const isStopped = isCancelled && error.detail["because"] === "stopped";
  if (keepsEarlier(turn.redo) && !(isStopped && hasContent(answer)) && !isOutage) {
    await failure.shown;
    if (await showEarlier(dependencies, { ...turn, lead }, text)) return isCancelled ? "cancelled" : "failed";
  }
  const before = isCancelled && !isStopped ? undefined : await findKept(dependencies, turn, failure);
  if (before !== undefined) answer.text = textOfAnswer(before);
  const continued = failure.continued ?? before;
  let stored: StoredMessage | "duplicate" | undefined;
  try {
    if (isNothing) log.info({}, "nothing to store of a turn that runs again");
    else if (!failure.isStored)
      stored = isCancelled
        ? await storeAnswer(
            dependencies,
            turn,
            { ...answer, notices: [...notices, text] },
            { outcome: "interrupted", receipt, isStopped, continued },
          )
        : await storeAnswer(dependencies, turn, answer, {
            outcome: outcome === "failed" && before === undefined ? outcome : "interrupted",
            failure: text,
            receipt,
            continued: before,
          });
  } catch (storeError) {
    log.error({ err: storeError }, "partial answer not stored");
    notices.push(toNotice(storeError));
  }
  await failure.shown;
  if (answer.text !== "") turn.reply.write({ lead, text: answer.text, isWhole: true });
  if (typeof stored === "object")
    notices.push(...(await showPictures(dependencies, turn.conversationId, stored.parts, turn.reply)));
  if (isCancelled) {
    const all = [...notices, text];
    await turn.reply.finish(
      typeof stored === "object" ? toEnding(turn.conversationId, stored, all) : { notices: all },
    );
    return outcome;
  }
  const retry = isWorthRetrying(error) ? { retryKey: turn.key } : {};
  const { sources } = typeof stored === "object" ? stored : {};
  await turn.reply.fail({
    text,
    notices,
    ...(sources === undefined ? {} : { sources }),
    ...retry,
    isTemporary: isOutage,
  });
  // The reply shows the failure, but the turn stays open. Recovery runs it again when there is a store.
  if (isOutage) throw error;
  return outcome;
}

/** The answer before a Retry that produced nothing, which stays. An edited question gets another answer. */
async function findKept(
  dependencies: TurnDependencies,
  turn: Turn,
  { error, answer, isStored }: Failure,
): Promise<StoredMessage | undefined> {
  if (hasContent(answer) || isStored || turn.attempt === 1 || turn.redo !== undefined) return undefined;
  if (isParleyError(error, "store-unavailable")) return undefined;
  const before = await findEarlier(dependencies, turn);
  return before?.outcome === "interrupted" ? before : undefined;
}
