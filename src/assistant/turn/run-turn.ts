import { isParleyError } from "../../core/errors.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { AnswerDraft, Result } from "../../core/result.ts";
import { joinSources } from "../../core/sources.ts";
import type { MessagePart, StoredMessage } from "../../core/storage.ts";
import { translate } from "../../words/translate.ts";
import { askModel } from "./ask-model.ts";
import { addReceipt, addUsage, textOfAnswer } from "./continued-answer.ts";
import { readMessages } from "./read-messages.ts";
import { estimatePartsTokens } from "./stored-messages.ts";
import { hasContent, type AnswerEnd, type PartialAnswer } from "./stream-answer.ts";
import { attachTranscripts } from "./transcribe-recording.ts";
import {
  createReceiptDraft,
  isOutage,
  type ReceiptDraft,
  throwIfAbandoned,
  type Turn,
  type TurnDependencies,
} from "./turn.ts";

/**
 * Runs a turn from its messages to its whole answer, or to what ended it.
 * @throws ParleyError `stopping`, `store-unavailable` and other outages, so that the turn runs again
 */
export async function runTurn(dependencies: TurnDependencies, turn: Turn): Promise<Result> {
  const { conversations } = dependencies;
  const answer: PartialAnswer = { text: "", images: [], notices: [] };
  const receipt = createReceiptDraft();
  const continued =
    turn.again?.kind === "continue"
      ? await conversations.find(turn.conversationId, messageIds.answer(turn.key))
      : undefined;
  const showBefore = (before: string): void => {
    if (continued !== undefined) turn.reply.write({ lead: before, text: textOfAnswer(continued) });
  };
  let { lead } = turn;
  // Text stays where it is. A reply without text shows that another answer is coming.
  showBefore(lead);
  const shown = turn.reply.show();
  // It is awaited below and in `streamAnswer`. Until then a rejection must not count as unhandled.
  void Promise.allSettled([shown]);
  const toDraft = (how: { readonly end?: AnswerEnd; readonly isStopped?: boolean } = {}): AnswerDraft =>
    draftOf(dependencies, turn, answer, { ...how, receipt, continued });
  try {
    const read = await readMessages(dependencies, turn);
    lead = [turn.lead, read.quoted].filter((part) => part !== "").join("\n\n");
    showBefore(lead);
    answer.notices.push(...read.notices);
    // What an earlier attempt attached is still there.
    if (read.files.length > 0 && (turn.again === undefined || turn.again.kind === "edit")) {
      await Promise.all([shown, read.whenStored]);
      answer.notices.push(...(await attachTranscripts(turn.reply, read.files, turn.signal)));
    }
    receipt.add(read.calls);
    receipt.reads(read.stored);
    if (read.parts.every(({ kind }) => kind === "unread")) {
      await Promise.all([shown, read.whenStored]);
      const why = translate("turn.nothing-readable");
      return { kind: "refused", lead, notices: answer.notices, why };
    }
    const question = { read, lead, shown, receipt, continued };
    const end = await askModel(dependencies, turn, question, answer);
    // If the model reached a limit while it thought, the gateway's client says so.
    if (end.reason !== "stop" && answer.text !== "")
      answer.notices.push(translate(`notice.ended.${end.reason}`));
    throwIfAbandoned(turn.signal);
    return {
      kind: "answer",
      answer: toDraft({ end }),
      lead,
      notices: answer.notices,
      isWritten: true,
      whenSettled: end.whenSettled,
    };
  } catch (error) {
    throwIfAbandoned(turn.signal);
    if (isOutage(error)) throw error;
    const { notices } = answer;
    const isStopped = isParleyError(error, "cancelled");
    const draft = toDraft({ isStopped });
    // Without words it still says what was asked of which model.
    const hasArrived = hasContent(answer) && answer.isHeldBack !== true;
    const arrived = { answer: hasArrived ? draft : { ...draft, parts: [], estimatedTokens: 0 } };
    return { kind: isStopped ? "stopped" : "failed", ...arrived, lead, notices, error };
  }
}

interface DraftOptions {
  readonly end?: AnswerEnd;
  /** Whether a person has stopped it. */
  readonly isStopped?: boolean;
  readonly receipt: ReceiptDraft;
  /** The answer that this continues. The two become one. */
  readonly continued: StoredMessage | undefined;
}

/** What has arrived of an answer, in the form in which it is stored. */
function draftOf(
  dependencies: TurnDependencies,
  { command }: Turn,
  answer: PartialAnswer,
  { end, isStopped = false, receipt: draft, continued }: DraftOptions,
): AnswerDraft {
  const text: MessagePart[] = answer.text === "" ? [] : [{ kind: "text", text: answer.text }];
  const broken = end === undefined ? draft.left(dependencies.gateway.usageIfLeft()) : undefined;
  const model = end?.model ?? (isStopped ? broken : undefined);
  const images = continued?.parts.filter(({ kind }) => kind === "image") ?? [];
  const parts = [...text, ...images, ...answer.images];
  const receipt = addReceipt(continued?.receipt, draft.toReceipt());
  const usage = addUsage(continued?.usage, end?.usage);
  const sources = joinSources(continued?.sources, end?.sources);
  const thoughts = [continued?.thoughts, answer.thoughts?.trim()].filter((one) => one).join("\n\n");
  return {
    parts,
    createdAt: dependencies.now(),
    estimatedTokens: estimatePartsTokens(parts),
    ...(command === undefined ? {} : { command }),
    ...(thoughts === "" ? {} : { thoughts }),
    ...(sources.length === 0 ? {} : { sources }),
    ...(answer.call === undefined ? {} : { call: answer.call }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(end?.reason === "length" || (end === undefined && text.length > 0) ? { isCut: true } : {}),
    ...(receipt === undefined ? {} : { receipt }),
  };
}
