import { earlierAnswerNotice } from "../../core/error-messages.ts";
import { actionsOf } from "../../core/reply-actions.ts";
import type { OpenRedo } from "../../core/inbox.ts";
import type { StoredMessage } from "../../core/storage.ts";
import { showPictures } from "./show-pictures.ts";
import { messageIds, textOf } from "./stored-messages.ts";
import type { Turn, TurnDependencies } from "./turn.ts";

/** Whether a run that brings no answer leaves the earlier one as it is. An edited question has none. */
export function keepsEarlier(redo: OpenRedo | undefined): redo is OpenRedo {
  return redo !== undefined && redo.kind !== "edit";
}

/** Shows a stored answer as its reply's end. */
export async function showStored(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  turn: Pick<Turn, "conversationId" | "reply" | "lead">,
  stored: StoredMessage,
  notices: readonly string[] = stored.notices ?? [],
): Promise<void> {
  turn.reply.write({ lead: turn.lead, text: textOf(stored.parts), isWhole: true });
  await showEnd(dependencies, turn, stored, notices);
}

/** Shows what comes below the text of a stored answer: its pictures, notices and buttons. */
export async function showEnd(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  { conversationId, reply }: Pick<Turn, "conversationId" | "reply">,
  stored: StoredMessage,
  notices: readonly string[],
): Promise<void> {
  const unshown = await showPictures(dependencies, conversationId, stored.parts, reply);
  await reply.finish({ notices: [...notices, ...unshown], actions: actionsOf(conversationId, stored) });
}

/** The answer of the last attempt before this one, also one that broke off. `undefined`: none is stored. */
export async function findEarlier(
  { conversations }: Pick<TurnDependencies, "conversations">,
  { conversationId, key, attempt }: Pick<Turn, "conversationId" | "key" | "attempt">,
): Promise<StoredMessage | undefined> {
  const whole = await conversations.find(conversationId, messageIds.complete(key));
  for (let earlier = attempt - 1; earlier > (whole?.attempt ?? 0); earlier--) {
    const found = await conversations.find(conversationId, messageIds.assistant(key, earlier));
    if (found !== undefined) return found;
  }
  return whole;
}

/** Ends a run without an answer: shows the earlier one again, and why there is no new one. False: there is none. */
export async function showEarlier(
  dependencies: Pick<TurnDependencies, "conversations" | "log">,
  turn: Pick<Turn, "conversationId" | "reply" | "lead" | "key" | "attempt">,
  why: string,
): Promise<boolean> {
  const stored = await findEarlier(dependencies, turn);
  if (stored === undefined) return false;
  const { notices = [], failure } = stored;
  const before = failure === undefined ? notices : [...notices, failure];
  await showStored(dependencies, turn, stored, [...before, earlierAnswerNotice(why)]);
  return true;
}
