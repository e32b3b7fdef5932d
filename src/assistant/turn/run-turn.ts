import { endedEarlyNotice, isWorthRetrying, toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { throwIfAbandoned } from "./abandoned.ts";
import { askModel } from "./ask-model.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import { createReceiptDraft, type ReceiptDraft } from "./receipt-draft.ts";
import { isAnswerable, quoteTranscripts, readMessages } from "./read-messages.ts";
import { storePlaces } from "./store-places.ts";
import { estimatePartsTokens, messageIds, textOf } from "./stored-messages.ts";
import type { AnswerEnd, PartialAnswer } from "./stream-answer.ts";
import type { Turn, TurnDependencies, TurnOutcome } from "./turn.ts";

/** What is said of a message that holds nothing readable. */
const nothingReadable = "There was nothing in it that Parley can read.";

/**
 * Runs a turn from its messages to the shown answer. Failures are shown in the reply, with Retry where it makes sense.
 * @throws ParleyError `stopping` and `store-unavailable`, so that the turn stays open for recovery
 */
export async function runTurn(dependencies: TurnDependencies, turn: Turn): Promise<TurnOutcome> {
  const startedAt = performance.now();
  const answer: PartialAnswer = { text: "", images: [], notices: [] };
  const receipt = createReceiptDraft(startedAt);
  const shown = turn.reply.show();
  // Awaited below and in `streamAnswer`; until then a rejection must not count as unhandled.
  void Promise.allSettled([shown]);
  let { lead } = turn;
  try {
    const read = await readMessages(dependencies, turn);
    lead = [turn.lead, quoteTranscripts(read.parts)].filter((part) => part !== "").join("\n\n");
    answer.notices.push(...read.notices);
    receipt.add(read.calls);
    receipt.reads(read.stored);
    if (!isAnswerable(read.parts)) {
      await Promise.all([shown, read.whenStored]);
      return await refuse(dependencies, turn, answer);
    }
    const end = await askModel(dependencies, turn, { read, lead, shown, startedAt, receipt }, answer);
    if (end.reason !== "stop") answer.notices.push(endedEarlyNotice(end.reason));
    throwIfAbandoned(turn.signal);
    const [stored] = await Promise.all([
      storeAnswer(dependencies, turn, answer, { outcome: "complete", end, receipt }),
      end.whenSettled,
    ]);
    // A process that was paused learns at the latest here that another one has resumed the turn.
    throwIfAbandoned(turn.signal);
    const placesStored = storePlaces(
      dependencies,
      turn.conversationId,
      turn.messages[0]?.within,
      end.settings,
    );
    if (stored === "duplicate") await showStored(dependencies, turn, { lead, answer });
    else
      await turn.reply.finish({
        notices: answer.notices,
        actions: actionsOf(turn.conversationId, stored),
      });
    await placesStored;
    return "complete";
  } catch (error) {
    return await concludeFailure(dependencies, turn, { error, answer, receipt, lead, shown });
  }
}

/**
 * An earlier attempt, of a process that had lost the conversation, has stored its answer while this one asked: people
 * see the one that is stored.
 */
async function showStored(
  dependencies: TurnDependencies,
  turn: Turn,
  { lead, answer }: { readonly lead: string; readonly answer: PartialAnswer },
): Promise<void> {
  const { conversations, log } = dependencies;
  const stored = await conversations.find(turn.conversationId, messageIds.complete(turn.key));
  log.info({ turn: turn.key, attempt: turn.attempt }, "another attempt has stored its answer");
  // Without one its author has removed it meanwhile.
  if (stored !== undefined) turn.reply.write({ lead, text: textOf(stored.parts) });
  await turn.reply.finish({
    notices: stored?.notices ?? answer.notices,
    actions: stored === undefined ? [] : actionsOf(turn.conversationId, stored),
  });
}

async function refuse(
  dependencies: TurnDependencies,
  turn: Turn,
  answer: PartialAnswer,
): Promise<TurnOutcome> {
  await storeAnswer(dependencies, turn, answer, { outcome: "failed", failure: nothingReadable });
  await turn.reply.fail({ text: nothingReadable, notices: answer.notices });
  return "failed";
}

interface AnswerResult {
  readonly outcome: NonNullable<StoredMessage["outcome"]>;
  readonly failure?: string;
  readonly end?: AnswerEnd;
  readonly receipt?: ReceiptDraft;
}

async function storeAnswer(
  dependencies: TurnDependencies,
  turn: Turn,
  answer: PartialAnswer,
  { outcome, failure, end, receipt: draft }: AnswerResult,
): Promise<StoredMessage | "duplicate"> {
  const text: MessagePart[] = answer.text === "" ? [] : [{ kind: "text", text: answer.text }];
  const parts = [...text, ...answer.images];
  const shownAs = turn.shownMessageKeys();
  const receipt = draft?.toReceipt();
  const message: StoredMessage = {
    id: outcome === "complete" ? messageIds.complete(turn.key) : messageIds.assistant(turn.key, turn.attempt),
    role: "assistant",
    turnKey: turn.key,
    attempt: turn.attempt,
    parts,
    createdAt: dependencies.now(),
    estimatedTokens: estimatePartsTokens(parts),
    outcome,
    ...(failure === undefined ? {} : { failure }),
    notices: answer.notices,
    ...(shownAs.length === 0 ? {} : { shownAs }),
    ...(end === undefined ? {} : { model: end.model, usage: end.usage }),
    ...(receipt === undefined ? {} : { receipt }),
  };
  const result = await dependencies.conversations.append(turn.conversationId, message);
  return result === "duplicate" ? result : message;
}

interface Failure {
  readonly error: unknown;
  readonly answer: PartialAnswer;
  readonly receipt: ReceiptDraft;
  readonly lead: string;
  readonly shown: Promise<void>;
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
  const outcome = outcomeOf(isCancelled, answer);
  if (!isCancelled) {
    log.warn({ turn: turn.key, err: error, outcome }, "turn failed");
    const code = isParleyError(error) ? error.code : "internal";
    dependencies.meter.call({ operation: "chat", outcome: code, model: "" }, { isEstimated: true });
  }
  const text = toNotice(error);
  const notices = [...answer.notices];
  // It is left open and runs again. What it answers may not be stored yet, and comes first.
  const isNothing = outcome === "failed" && isParleyError(error, "store-unavailable");
  let stored: StoredMessage | "duplicate" | undefined;
  try {
    if (isNothing) log.info({ turn: turn.key }, "nothing to store of a turn that runs again");
    else
      stored = isCancelled
        ? await storeAnswer(
            dependencies,
            turn,
            { ...answer, notices: [...notices, text] },
            { outcome: "interrupted", receipt },
          )
        : await storeAnswer(dependencies, turn, answer, {
            outcome: outcome === "failed" ? outcome : "interrupted",
            failure: text,
            receipt,
          });
  } catch (storeError) {
    log.error({ turn: turn.key, err: storeError }, "partial answer not stored");
    notices.push(toNotice(storeError));
  }
  await failure.shown;
  if (answer.text !== "") turn.reply.write({ lead, text: answer.text });
  if (isCancelled) {
    const actions = typeof stored === "object" ? actionsOf(turn.conversationId, stored) : [];
    await turn.reply.finish({ notices: [...notices, text], actions });
    return outcome;
  }
  // Shown as failed, and left open: recovery runs it again once there is a store.
  const isTemporary = isParleyError(error, "store-unavailable");
  const retry = isWorthRetrying(error) ? { retryKey: turn.key } : {};
  await turn.reply.fail({ text, notices, ...retry, isTemporary });
  if (isTemporary) throw error;
  return outcome;
}

function outcomeOf(isCancelled: boolean, { text, images }: PartialAnswer): TurnOutcome {
  if (isCancelled) return "cancelled";
  return text === "" && images.length === 0 ? "failed" : "interrupted";
}
