import type { IncomingEvent } from "../../core/events.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Conversations } from "../../core/storage.ts";
import { storedIn } from "./pending-turn.ts";

/** Stored messages that are looked at for those of other turns. */
const maxRecentAnswers = 50;

/**
 * Finds the messages that show other turns of the conversation than the one of these inbox keys, to which `event`
 * belongs.
 *
 * @see {@link ReplyHooks.otherTurnsShow}
 */
export function createOtherTurns(
  inbox: Pick<Inbox, "listOpenIn">,
  conversations: Pick<Conversations, "recent">,
): (
  event: IncomingEvent,
  keys: readonly string[],
  platform: Pick<Platform, "shownMessageKeys">,
) => NonNullable<ReplyHooks["otherTurnsShow"]> {
  return (event, keys, platform) => async (wanted) => {
    const open = await inbox.listOpenIn(event.conversationId);
    const others = open.filter((one) => !keys.includes(one.event.key));
    const shown = others.flatMap(({ turn }) =>
      turn === undefined ? [] : platform.shownMessageKeys(turn.address),
    );
    // Another process may have begun and ended one meanwhile.
    const stored = await conversations.recent(storedIn(event), { maxMessages: maxRecentAnswers });
    for (const { turnKey, shownAs = [] } of stored) if (!keys.includes(turnKey)) shown.push(...shownAs);
    return wanted.filter((key) => shown.includes(key));
  };
}
