import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Platform, ReplyHooks } from "../../core/platform.ts";
import type { Conversations } from "../../core/storage.ts";

/** How many stored messages are searched for those of other turns. */
const maxRecentAnswers = 50;

/**
 * Finds the messages that show other turns of the conversation than the one with these inbox keys and
 * `event`. @see {@link ReplyHooks.otherTurnsShow}
 */
export function createOtherTurns(
  inbox: Pick<Inbox, "openIn">,
  conversations: Pick<Conversations, "recent">,
): (
  event: IncomingEvent,
  keys: readonly string[],
  platform: Pick<Platform, "shownMessageKeys">,
) => NonNullable<ReplyHooks["otherTurnsShow"]> {
  return (event, keys, platform) => async (wanted) => {
    const open = await inbox.openIn(event.conversationId);
    const others = open.filter((one) => !keys.includes(one.event.key));
    const shown = others.flatMap(({ turn }) =>
      turn === undefined ? [] : platform.shownMessageKeys(turn.address),
    );
    // Another process may have started and ended a turn in the meantime.
    const stored = await conversations.recent(storedIn(event), { maxMessages: maxRecentAnswers });
    for (const { turnKey, shownAs = [] } of stored) if (!keys.includes(turnKey)) shown.push(...shownAs);
    return wanted.filter((key) => shown.includes(key));
  };
}
