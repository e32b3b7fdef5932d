import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import { toConversationId, toMessageKey } from "./address.ts";

interface MessagePlace {
  readonly ts?: string;
  readonly thread_ts?: string;
  readonly subtype?: string;
}

/** A `message` event, as far as it may say that a message was deleted. */
export interface RemovalEvent {
  readonly channel: string;
  readonly subtype?: string;
  readonly deleted_ts?: string;
  readonly previous_message?: MessagePlace;
  readonly message?: MessagePlace;
}

/**
 * Passes a deletion on; false: the event is none. The root of a thread with answers is not deleted but changed
 * into a tombstone.
 * @see https://docs.slack.dev/reference/events/message/message_deleted
 */
export async function passRemoval(event: RemovalEvent, teamId: string, receiver: Receiver): Promise<boolean> {
  const isTombstone = event.subtype === "message_changed" && event.message?.subtype === "tombstone";
  if (event.subtype !== "message_deleted" && !isTombstone) return false;
  const gone = isTombstone ? event.message : event.previous_message;
  const ts = isTombstone ? gone?.ts : (event.deleted_ts ?? gone?.ts);
  if (ts === undefined) return true;
  await receiver.messagesDeleted(toConversationId(teamId, event.channel, gone?.thread_ts ?? ts), [
    toMessageKey(teamId, event.channel, ts),
  ]);
  return true;
}

/** A channel was deleted: each thread in it was a conversation. */
export async function removeChannel(
  channel: string,
  teamId: string,
  receiver: Receiver,
  history: ConversationHistory,
): Promise<void> {
  const done = new Set<string>();
  for (;;) {
    // A list has an end, and there may be more behind it.
    const found = await history.conversations(toConversationId(teamId, channel, ""));
    const left = found.filter(({ conversationId }) => !done.has(conversationId));
    if (left.length === 0) return;
    for (const { conversationId } of left) {
      done.add(conversationId);
      await receiver.conversationDeleted(conversationId);
    }
  }
}
