import type { IncomingMessage } from "../../core/events.ts";
import type { Inbox, InboxEntry, TurnProgress } from "../../core/inbox.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";
import { messageIds } from "../turn/stored-messages.ts";
import { storedIn } from "./pending-turn.ts";

/** Stored messages that are looked at for the turn of a message and for what was said after it. */
const maxLater = 200;

/** The turn that has answered a message. */
export interface AnsweredTurn {
  readonly progress: TurnProgress;
  /** Those of its events that are known, in order. */
  readonly entries: readonly InboxEntry[];
  /** Whether nobody has said anything since, and nobody has reset the conversation. */
  readonly isLast: boolean;
}

/**
 * Finds the turn whose reply answers a message, alone or together with others. `undefined`: it is not known any more.
 * @throws ParleyError `store-unavailable`
 */
export async function findAnsweredTurn(
  { inbox, conversations }: { readonly inbox: Inbox; readonly conversations: Conversations },
  message: IncomingMessage,
): Promise<AnsweredTurn | undefined> {
  const conversationId = storedIn(message);
  const [log, settings, open] = await Promise.all([
    conversations.recent(conversationId, { maxMessages: maxLater }),
    conversations.settings(conversationId),
    inbox.listOpenIn(message.conversationId),
  ]);
  const position = log.findIndex(({ id }) => id === messageIds.user(message.key));
  const later = position === -1 ? [] : log.slice(position + 1);
  const firstKeys = [message.key, ...later.filter(isAnswer).map(({ turnKey }) => turnKey)];
  const first = (await inbox.lookUp([...new Set(firstKeys)])).find(
    ({ event, turn }) => turn !== undefined && [event.key, ...turn.keys].includes(message.key),
  );
  if (first?.turn === undefined) return undefined;
  const { keys } = first.turn;
  const isOther = (key: string): boolean => !keys.includes(key);
  const isReset = later.some(({ id }) => id === settings.resetAfter);
  const isFollowed =
    later.some(({ turnKey, inContext }) => inContext !== false && isOther(turnKey)) ||
    open.some(
      ({ event, wasAnswered }) =>
        wasAnswered !== true && isOther(event.key) && storedIn(event) === conversationId,
    );
  return {
    progress: first.turn,
    entries: await inbox.lookUp(keys),
    isLast: position !== -1 && !isReset && !isFollowed,
  };
}

function isAnswer({ role }: StoredMessage): boolean {
  return role === "assistant";
}
