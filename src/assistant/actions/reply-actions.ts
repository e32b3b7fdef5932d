import type { Access, Actor, Asker } from "../../core/access.ts";
import { isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Receiver } from "../../core/platform.ts";
import {
  parseActionKey,
  type ActionResult,
  type ActionUse,
  type ReplyAction,
} from "../../core/reply-actions.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import type { Receipt } from "../../core/receipt.ts";
import type { StopTurn } from "../scheduling/stop-turn.ts";
import { toLanguage } from "../../words/languages.ts";
import { inLanguage, translate } from "../../words/translate.ts";
import { isFile } from "../turn/receipt-draft.ts";
import { toDetails, type NamedFile } from "./details.ts";
import { heardWordsOf, readTranscriptForm, toTranscriptForm } from "./fix-transcript.ts";
import { createAnswerAnew, type AnswerAnewOptions } from "./answer-anew.ts";
import { createOtherModels, type OtherModelsOptions } from "./other-models.ts";
import { changePicture, drawAgain, findQuestion } from "./picture-actions.ts";
import { createRecentPresses, type RecentPressesOptions } from "./recent-presses.ts";

/** What {@link createReplyActions} works with. */
export interface ReplyActionOptions extends AnswerAnewOptions, OtherModelsOptions, RecentPressesOptions {
  readonly conversations: Pick<Conversations, "find" | "recent" | "settings">;
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn">;
  readonly access: Pick<Access, "isAdmin" | "refusalOf">;
  /** @throws ParleyError `access-denied` by the operator's rules or those of the place */
  readonly expectAllowed: (asker: Asker) => Promise<void>;
  readonly stop: StopTurn["stop"];
}

/** Runs the buttons of replies. */
export function createReplyActions(options: ReplyActionOptions): Pick<Receiver, "act"> {
  const { conversations, expectAllowed } = options;
  const answerAnew = createAnswerAnew(options);
  const otherModels = createOtherModels(options);
  const presses = createRecentPresses(options);

  /** The files of the question, from its messages: those that were erased are not named. */
  async function filesOf(conversationId: string, { files }: Receipt): Promise<NamedFile[]> {
    const questions = await Promise.all(
      (files?.of ?? []).map((id) => conversations.find(conversationId, id)),
    );
    return questions
      .flatMap((question) => question?.parts ?? [])
      .filter(isFile)
      .map((part) => ({ name: part.name, ...(part.kind === "unread" ? { unread: part.reason } : {}) }));
  }

  async function detailsOf(conversationId: string, { receipt }: StoredMessage): Promise<ActionResult> {
    if (receipt === undefined) return { kind: "gone" };
    return { kind: "told", markdown: toDetails(receipt, await filesOf(conversationId, receipt)) };
  }

  async function stop(key: string, by: Actor): Promise<ActionResult> {
    const outcome = await options.stop(key, by);
    return outcome === "stopped" ? { kind: "done" } : { kind: "told", markdown: translate("steer.ended") };
  }

  async function oncePerClick(
    result: ActionResult,
    { kind, key }: ReplyAction,
    { platform, author }: Actor,
  ): Promise<ActionResult> {
    if (result.kind !== "call") return result;
    const isFirst = await presses.isFirst(`${kind} ${key}`, { platform, personId: author.id });
    return isFirst ? result : { kind: "done" };
  }

  async function run(
    action: ReplyAction,
    by: Actor,
    { values, isPrivate = false }: ActionUse,
  ): Promise<ActionResult> {
    const { kind, key } = action;
    if (kind === "stop") return await stop(key, by);
    const target = parseActionKey(key);
    // Ids of conversations begin with their platform: another one's answers are nobody's here.
    if (target?.conversationId.startsWith(`${by.platform}:`) !== true) return { kind: "gone" };
    const { conversationId } = target;
    const message = await conversations.find(conversationId, target.messageId);
    if (message === undefined) return { kind: "gone" };
    if (kind === "details") return await detailsOf(conversationId, message);
    if (kind === "regenerate" || kind === "continue")
      return await answerAnew({ kind }, { ...target, message }, by);
    const question = await findQuestion(conversations, conversationId, message);
    // Only its owner sees a private answer.
    if (isPrivate && question !== undefined && question.author?.id !== by.author.id) return { kind: "gone" };
    const pictures = { conversationId, answer: message, question };
    const answer = { ...target, message };
    switch (kind) {
      case "again":
        return await oncePerClick(drawAgain(pictures), action, by);
      case "change":
        return await oncePerClick(changePicture(pictures, key, values), action, by);
      case "model":
        return await regenerateWithOther(key, answer, by, values);
      case "transcript":
        return await fixTranscript(key, answer, by, values);
    }
  }

  /** A form with the words that were heard; then the question is answered anew with those of the person, or they are shown. */
  async function fixTranscript(
    key: string,
    answer: Parameters<typeof answerAnew>[1],
    by: Actor,
    values: ActionUse["values"],
  ): Promise<ActionResult> {
    const heard = await heardWordsOf(conversations, answer.conversationId, answer.message);
    if (heard.length === 0) return { kind: "gone" };
    if (values === undefined) {
      const check = await answerAnew("check", answer, by, heard);
      if (check.kind !== "done") return check;
      const isAnswered = answer.message.receipt?.calls.at(-1)?.operation === "chat";
      return { kind: "form", form: toTranscriptForm(key, heard, { isAnswered }) };
    }
    const submitted = readTranscriptForm(heard, values);
    if ("result" in submitted) return submitted.result;
    return await answerAnew({ kind: "edit" }, answer, by, submitted.fixed);
  }

  /** A form with the models that can answer instead; then the question is answered anew by the one that was chosen. */
  async function regenerateWithOther(
    key: string,
    answer: Parameters<typeof answerAnew>[1],
    by: Actor,
    values: ActionUse["values"],
  ): Promise<ActionResult> {
    const check = await answerAnew("check", answer, by);
    if (check.kind !== "done") return check;
    const none: ActionResult = { kind: "told", markdown: translate("other-model.none") };
    if (values === undefined) {
      const form = await otherModels.form(key, answer);
      return form === undefined ? none : { kind: "form", form };
    }
    const chosen = await otherModels.choose(answer, values);
    if ("none" in chosen) return none;
    if ("problems" in chosen) return { kind: "problems", problems: chosen.problems };
    return await answerAnew({ kind: "regenerate", model: chosen.model }, answer, by);
  }

  return {
    async act(action, by, use = {}) {
      await expectAllowed(by);
      try {
        return await inLanguage(toLanguage(by.author.locale), () => run(action, by, use));
      } catch (error) {
        if (!isParleyError(error, "not-permitted")) throw error;
        return { kind: "told", markdown: toNotice(error) };
      }
    },
  };
}
