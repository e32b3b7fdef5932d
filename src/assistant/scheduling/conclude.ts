import { toNotice } from "../../core/error-messages.ts";
import { codeOf, isWorthRetrying } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { AgainReason, Attempt, Inbox, InboxRecord, ResultKind, TurnEnd } from "../../core/inbox.ts";
import { messageIds } from "../../core/message-ids.ts";
import type { Reply } from "../../core/reply.ts";
import type { AnswerDraft, Result } from "../../core/result.ts";
import { toShownEnd } from "../../core/shown-end.ts";
import type { Archive, Conversations, StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import { textOfAnswer } from "../turn/continued-answer.ts";
import { toQuestion, toEditedQuestion, isInLog } from "../turn/read-messages.ts";
import { noteLastPicture, showPictures, textOf, toEnding } from "../turn/stored-messages.ts";
import { findShownLead } from "../turn/transcribe-recording.ts";
import { throwIfAbandoned, type Run } from "../turn/turn.ts";
import { toOvertaken, toStopped, toWithdrawn } from "./active-turn.ts";

/**
 * What a turn ends with.
 * - `answer`: the whole answer, in place of an earlier one.
 * - `partial`: the words so far, and why they are not all.
 * - `words-less`: only the notice that says who has stopped it.
 * - `failure`: only what went wrong.
 * - `earlier`: the earlier answer stays, and below it stands why there is no new one.
 * - `nothing`: its questions are gone, and nothing is stored.
 */
export type EndWith = "answer" | "partial" | "words-less" | "failure" | "earlier" | "nothing";

/**
 * What a turn that runs again makes of the earlier answer. A new reason does not compile before that is
 * decided.
 * - `replaced`: the new one takes its place, and it stays where there is no new one.
 * - `retried`: the same. Where it had failed, it stays with that failure.
 * - `continued`: the two become one.
 * - `outdated`: it may quote words that were edited away, and goes in any case.
 */
const earlierAnswers = {
  retry: "retried",
  confirm: "replaced",
  regenerate: "replaced",
  continue: "continued",
  edit: "outdated",
} as const satisfies Readonly<Record<AgainReason, "replaced" | "retried" | "continued" | "outdated">>;

/** Whether words of an answer have arrived, and whether there is an earlier one that may stay. */
export type Before = "neither" | "words" | "earlier" | "both";

/** The end of each result. A result without a row does not compile. */
export const ends = {
  answer: { neither: "answer", words: "answer", earlier: "answer", both: "answer" },
  stopped: { neither: "words-less", words: "partial", earlier: "earlier", both: "partial" },
  failed: { neither: "failure", words: "partial", earlier: "earlier", both: "earlier" },
  refused: { neither: "failure", words: "failure", earlier: "earlier", both: "earlier" },
  sealed: { neither: "failure", words: "failure", earlier: "earlier", both: "earlier" },
  withdrawn: { neither: "nothing", words: "nothing", earlier: "earlier", both: "earlier" },
} as const satisfies Readonly<Record<ResultKind, Readonly<Record<Before, EndWith>>>>;

interface ConcludeOptions {
  readonly inbox: Pick<Inbox, "write">;
  readonly conversations: Pick<Conversations, "find" | "getBlob" | "saveSettings">;
  readonly archive: Pick<Archive, "removeMessages">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
  readonly log: Log;
}

/** An attempt that has come to a result, and what it answers. */
interface ConcludedRun extends Run {
  readonly events: readonly IncomingEvent[];
}

/** What an end shows besides what is stored of it. */
interface Shown {
  readonly end: TurnEnd;
  readonly answer: StoredMessage | undefined;
  readonly result?: Result;
  readonly lead: string;
}

/**
 * Ends an attempt: it stores how the turn ends, shows that, and closes the record. Where somebody has stopped
 * the turn or deleted its questions meanwhile, it ends so.
 * @returns how it ended, for logs and metrics
 * @throws ParleyError `stopping` where another attempt continues; outages, after which the end is shown later
 */
export async function conclude(
  options: ConcludeOptions,
  run: ConcludedRun,
  given: Result,
): Promise<TurnOutcome> {
  const { inbox } = options;
  let result = given;
  let outcome: TurnOutcome = "complete";
  for (;;) {
    if (result.isUnstored === true) {
      await showResult(run.reply, result);
      break;
    }
    const answer = run.attempt === 1 ? undefined : await findAnswer(options, run);
    const isAsked = await isQuestionKept(options, run, result);
    const decided = toDecided(options, run, { result, earlier: answer, isAsked });
    const [written] = await Promise.all([
      inbox.write(toAttempt(run), { kind: "end", ...decided.write }),
      result.whenSettled,
    ]);
    if (!written.isWritten) {
      const end = written.record?.turn?.end;
      // The attempt is told why by its signal.
      throwIfOvertaken(run, written.record);
      const { why: _why, ...arrived } = result;
      result =
        end?.kind === "withdrawn"
          ? { kind: "withdrawn", notices: [], error: toWithdrawn() }
          : { ...arrived, kind: "stopped", error: toStopped(end?.by ?? "") };
      continue;
    }
    outcome =
      decided.endWith === "partial" && result.kind === "failed" ? "interrupted" : outcomes[result.kind];
    const stored = decided.write.answer ?? answer;
    if (decided.write.answer !== undefined) {
      if (hasImages(answer)) await eraseLooseFiles(options, run);
      await noteLastPicture(options.conversations, run.conversationId, decided.write.answer);
    } else if (answer !== undefined && result.kind === "withdrawn" && run.again?.kind === "edit") {
      // It may quote the words before the edit.
      await options.archive.removeMessages(run.conversationId, { ids: [answer.id] });
    }
    throwIfAbandoned(run.signal);
    await showEnd(options, run, {
      end: decided.write.end,
      answer: stored,
      result,
      lead: result.lead ?? (decided.endWith === "answer" ? "" : await findLead(options, run)),
    });
    break;
  }
  throwIfAbandoned(run.signal);
  options.log.debug({ outcome }, "reply ended");
  const isRepeatable = result.buttons?.confirm !== undefined;
  await inbox.write(toAttempt(run), { kind: "close", isRepeatable });
  return outcome;
}

const outcomes: Readonly<Record<ResultKind, TurnOutcome>> = {
  answer: "complete",
  failed: "failed",
  stopped: "cancelled",
  refused: "failed",
  sealed: "failed",
  withdrawn: "cancelled",
};

/** How an attempt ended. People have seen words of `failed` and `interrupted`. */
export type TurnOutcome = "complete" | "interrupted" | "failed" | "cancelled" | "shown";

/** Shows an end that an earlier attempt has stored or decided, and closes the record. */
export async function concludeAgain(
  options: ConcludeOptions,
  run: ConcludedRun,
  end: TurnEnd,
): Promise<TurnOutcome> {
  if (!end.isStored) {
    const error = end.kind === "withdrawn" ? toWithdrawn() : toStopped(end.by ?? "");
    return await conclude(options, run, { kind: end.kind, notices: [], error });
  }
  const answer = await findAnswer(options, run);
  // The process may have died before it could do this.
  if ((answer?.attempt ?? 0) > 1) await eraseLooseFiles(options, run);
  await showEnd(options, run, { end, answer, lead: await findLead(options, run) });
  throwIfAbandoned(run.signal);
  await options.inbox.write(toAttempt(run), { kind: "close" });
  return "shown";
}

const toAttempt = ({ key, attempt, conversationId }: Run): Attempt => ({ key, attempt, conversationId });

const findAnswer = async (
  { conversations }: Pick<ConcludeOptions, "conversations">,
  { conversationId, key }: Run,
): Promise<StoredMessage | undefined> => conversations.find(conversationId, messageIds.answer(key));

/** What people see of the question before an answer. */
const findLead = async (
  { conversations }: Pick<ConcludeOptions, "conversations">,
  { conversationId, events }: ConcludedRun,
): Promise<string> => findShownLead(conversations, conversationId, events);

/** Erases the pictures of an answer that another one has replaced. No other turn runs in the conversation. */
async function eraseLooseFiles(
  { archive }: Pick<ConcludeOptions, "archive">,
  { conversationId }: Run,
): Promise<void> {
  await archive.removeMessages(conversationId, { ids: [], withLooseFiles: true });
}

function hasImages(message: StoredMessage | undefined): boolean {
  return [message, ...(message?.versions ?? [])].some((one) =>
    one?.parts.some(({ kind }) => kind === "image"),
  );
}

/** @throws ParleyError `stopping` unless a person has ended this attempt */
function throwIfOvertaken(run: Run, record: InboxRecord | undefined): void {
  const turn = record?.turn;
  const isOurs = turn !== undefined && turn.attempt === run.attempt && turn.since < run.attempt;
  if (isOurs && turn.end?.isStored === false) return;
  throw toOvertaken();
}

/** Whether an answer has anything that people can read or see. */
function hasWords(message: Pick<StoredMessage, "parts"> | undefined): boolean {
  return (message?.parts ?? []).some(({ kind }) => kind !== "unread");
}

/** Whether the question is, or will be, in the log. What a command could not do is stored only there. */
async function isQuestionKept(
  { conversations }: Pick<ConcludeOptions, "conversations">,
  { conversationId, events }: ConcludedRun,
  { answer, question }: Result,
): Promise<boolean> {
  const [first] = events;
  if (first?.kind !== "call" || question !== undefined || hasWords(answer)) return true;
  return (await conversations.find(conversationId, messageIds.user(first.key))) !== undefined;
}

/** What is stored and shown of a result. */
function toDecided(
  { now }: ConcludeOptions,
  run: ConcludedRun,
  {
    result: given,
    earlier,
    isAsked,
  }: { readonly result: Result; readonly earlier: StoredMessage | undefined; readonly isAsked: boolean },
) {
  const { kind, error } = given;
  // An edited question has no earlier answer to keep.
  const { again } = run;
  const fate = again && earlierAnswers[again.kind];
  const isKept = hasWords(earlier) && fate !== "outdated" && earlier?.attempt !== run.attempt;
  const arrived = hasWords(given.answer);
  const before: Before = isKept ? (arrived ? "both" : "earlier") : arrived ? "words" : "neither";
  // The words of a failed attempt stay with the failure of its Retry.
  const stays = ends[kind][before] === "earlier" && fate === "retried" ? earlier : undefined;
  const isFailedAgain = kind !== "stopped" && kind !== "withdrawn" && stays?.failure !== undefined;
  const result = isFailedAgain ? { ...given, answer: toDraft(stays) } : given;
  const endWith: EndWith = isFailedAgain ? "partial" : ends[kind][before];
  const why = kind === "answer" ? undefined : (result.why ?? toNotice(error));
  const canRetry = kind === "sealed" || (kind !== "stopped" && error !== undefined && isWorthRetrying(error));
  const end: TurnEnd = {
    kind,
    at: now(),
    isStored: true,
    ...(why === undefined ? {} : { why }),
    ...(error === undefined ? {} : { code: codeOf(error) }),
    ...(canRetry && endWith !== "earlier" && endWith !== "nothing" ? { canRetry: true } : {}),
    ...(endWith === "earlier" ? { keepsEarlier: true } : {}),
  };
  const answer = isAsked ? toStoredAnswer(run, result, endWith, why, now()) : undefined;
  const isGone = kind === "withdrawn";
  const questions = isGone ? [] : unaskedOf(run, result, why);
  const keepsVersions = run.reply.showsVersions === true && fate !== "outdated";
  const isSame = fate === "continued" || isFailedAgain;
  const how = isSame ? ("continued" as const) : ("version" as const);
  return {
    endWith,
    write: {
      end,
      questions,
      noted: isGone ? {} : { within: run.events[0]?.within },
      toEdited,
      ...(answer === undefined ? {} : { answer, earlier: keepsVersions ? how : ("erased" as const) }),
    },
  };
}

/** The words of an answer, to be stored with another end. */
function toDraft(stored: StoredMessage): AnswerDraft {
  const { id: _id, role: _role, turnKey: _turn, attempt: _attempt, shownAs: _shown, ...rest } = stored;
  const { versions: _versions, ratings: _ratings, createdAt: _at, ...draft } = rest;
  return draft;
}

/** A question with the words of an edit that was made since its attempt began. */
function toEdited(question: StoredMessage, event: IncomingEvent): StoredMessage {
  const content = event.kind === "call" ? event.editedTo : event;
  const { edit } = event;
  if (content === undefined || edit === undefined || edit.at <= (question.editedAt ?? -Infinity))
    return question;
  return toEditedQuestion(question, content, edit.at);
}

/** The questions that the log does not have yet. */
function unaskedOf(
  { events }: ConcludedRun,
  { question }: Result,
  why: string | undefined,
): readonly StoredMessage[] {
  if (question !== undefined) return [question];
  return events.flatMap((event) => {
    if (event.kind === "call" || isInLog(event)) return [];
    const reason = (why ?? translate("file.late")).replace(/[.。]$/, "");
    return [
      toQuestion(
        event,
        event.attachments.map(({ name }) => ({ kind: "unread", name, reason })),
      ),
    ];
  });
}

function toStoredAnswer(
  run: ConcludedRun,
  { kind, answer, notices }: Result,
  endWith: EndWith,
  why: string | undefined,
  now: number,
): StoredMessage | undefined {
  if (endWith === "earlier" || endWith === "nothing") return undefined;
  const shownAs = run.shownMessageKeys();
  const base = {
    parts: [],
    createdAt: now,
    estimatedTokens: 0,
    ...answer,
    id: messageIds.answer(run.key),
    role: "assistant",
    turnKey: run.key,
    attempt: run.attempt,
    ...(shownAs.length === 0 ? {} : { shownAs }),
  } as const;
  const all = kind === "stopped" && why !== undefined ? [...notices, why] : notices;
  const failure = kind === "stopped" || why === undefined ? {} : { failure: why };
  switch (endWith) {
    case "answer":
      return { ...base, outcome: "complete", notices: all };
    case "partial":
      return { ...base, outcome: "interrupted", notices: all, ...failure };
    case "words-less":
      return { ...base, parts: [], outcome: "interrupted", notices: all };
    case "failure":
      return { ...base, parts: [], outcome: "failed", notices: all, ...failure };
  }
}

/** Shows a result that is not stored. */
async function showResult(reply: Reply, { answer, notices, buttons, lead, shown }: Result): Promise<void> {
  const text = shown ?? textOf(answer?.parts ?? []);
  reply.write({ ...(lead === undefined ? {} : { lead }), text, isWhole: true });
  await reply.finish({ ...(notices.length === 0 ? {} : { notices }), ...buttons });
}

/** Shows how a turn has ended, from what is stored of it. */
async function showEnd(
  options: ConcludeOptions,
  run: Run,
  { end, answer, result, lead }: Shown,
): Promise<void> {
  const { conversationId, key, reply } = run;
  const why = end.why ?? "";
  await reply.show();
  if (end.kind === "withdrawn" && (end.keepsEarlier !== true || answer === undefined)) {
    await reply.finish({ notices: [why === "" ? toNotice(toWithdrawn()) : why] });
    return;
  }
  if (answer === undefined) {
    // Somebody may have removed the stored answer in the meantime.
    if (end.kind === "answer" || end.kind === "stopped")
      await reply.finish({ notices: why === "" ? [] : [why] });
    else await reply.fail({ text: why, ...(end.canRetry === true ? { retryKey: key } : {}) });
    return;
  }
  const { failure, notices } = toShownEnd(answer, end);
  const pictures = (): Promise<readonly string[]> =>
    showPictures(options, conversationId, answer.parts, reply);
  const unshown: string[] = [];
  if (result?.hasPicturesFirst === true) unshown.push(...(await pictures()));
  const text = result?.shown ?? (result === undefined ? textOf(answer.parts) : textOfAnswer(answer));
  if (result?.isWritten !== true || end.kind !== "answer") {
    if (text !== "" || failure === undefined) reply.write({ lead, text, isWhole: true });
  }
  if (result?.hasPicturesFirst !== true) unshown.push(...(await pictures()));
  const all = [...notices, ...unshown];
  if (failure !== undefined) {
    await reply.fail({
      text: failure,
      notices: all,
      ...(answer.sources === undefined ? {} : { sources: answer.sources }),
      ...(end.canRetry === true ? { retryKey: key } : {}),
    });
    return;
  }
  await reply.finish({ ...toEnding(conversationId, answer, all), ...result?.buttons });
}
