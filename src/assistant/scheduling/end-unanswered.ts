import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { StoppedAnswer } from "../../core/inbox.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { keepsEarlier, showEarlier, showStored } from "../turn/earlier-answer.ts";
import { keepAnswer } from "../turn/keep-answer.ts";
import { messageIds, textOf } from "../turn/stored-messages.ts";
import { noteLastPicture } from "../turn/stored-pictures.ts";
import type { Turn, TurnDependencies } from "../turn/turn.ts";
import { toStopped } from "./active-turn.ts";

type Ended = Pick<
  Turn,
  "key" | "attempt" | "conversationId" | "reply" | "lead" | "redo" | "shownMessageKeys"
> & {
  /** Who stopped it. `undefined`: it is too old, or failed too often, to run again. */
  readonly stoppedBy: string | undefined;
  /** What people saw of its answer then. */
  readonly stoppedAnswer?: StoppedAnswer | undefined;
};

/**
 * Ends the reply of a turn that is not run: the earlier answer where there is one, and why there is none. The end is the
 * turn's answer from then on; one that nobody stopped can be retried.
 */
export async function endUnanswered(
  dependencies: Pick<TurnDependencies, "conversations" | "archive" | "now" | "log">,
  turn: Ended,
): Promise<"cancelled" | "failed"> {
  const { key, attempt, conversationId, reply, redo, stoppedBy, stoppedAnswer } = turn;
  if (stoppedAnswer !== undefined) return await endWithAnswer(dependencies, turn, stoppedAnswer);
  const why = toNotice(
    stoppedBy === undefined ? new ParleyError("too-old", "not run again") : toStopped(stoppedBy),
  );
  await reply.show();
  if (keepsEarlier(redo) && (await showEarlier(dependencies, turn, why))) return "cancelled";
  const question = await dependencies.conversations.find(conversationId, messageIds.user(key));
  const shownAs = turn.shownMessageKeys();
  const isStopped = stoppedBy !== undefined;
  if (question !== undefined)
    await keepAnswer(dependencies, turn, {
      id: messageIds.complete(key),
      role: "assistant",
      turnKey: key,
      attempt,
      parts: [],
      createdAt: dependencies.now(),
      estimatedTokens: 0,
      ...(isStopped ? { outcome: "interrupted", notices: [why] } : { outcome: "failed", failure: why }),
      ...(shownAs.length === 0 ? {} : { shownAs }),
    });
  if (isStopped) {
    await reply.finish({ notices: [why] });
    return "cancelled";
  }
  dependencies.log.info({ attempt }, "turn sealed: too old, or failed too often");
  await reply.fail({ text: why, retryKey: key });
  return "failed";
}

/** The words stay where people saw them, and are the answer. */
async function endWithAnswer(
  dependencies: Pick<TurnDependencies, "conversations" | "archive" | "log">,
  turn: Ended,
  { message: { shownAs: _earlier, ...message }, lead }: StoppedAnswer,
): Promise<"cancelled"> {
  const { conversations } = dependencies;
  const { reply } = turn;
  reply.write({ lead, text: textOf(message.parts), isWhole: true });
  await reply.show();
  const shownAs = turn.shownMessageKeys();
  const answer: StoredMessage = {
    ...message,
    attempt: turn.attempt,
    ...(shownAs.length === 0 ? {} : { shownAs }),
  };
  const kept = await keepAnswer(dependencies, turn, answer);
  await noteLastPicture(conversations, turn.conversationId, answer);
  const stored = kept === "stored" ? answer : await conversations.find(turn.conversationId, answer.id);
  if (stored !== undefined) await showStored(dependencies, { ...turn, lead }, stored);
  // Its author has removed it meanwhile.
  else await reply.finish({ notices: message.notices ?? [] });
  return "cancelled";
}
