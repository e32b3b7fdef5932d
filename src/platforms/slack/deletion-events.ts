import { ParleyError } from "../../core/errors.ts";
import type { ConversationHistory, Receiver } from "../../core/platform.ts";
import {
  isDirectMessages,
  toChannelConversationId,
  toChannelPlace,
  toChannelTerm,
  toConversationId,
  toConversationPrefix,
  toMessageKey,
} from "./address.ts";
import { inLookupTime } from "./lookup-time.ts";
import type { SlackMessageInfo } from "./message-info.ts";
import type { ReplacedMessages } from "./replaced-messages.ts";
import type { Identity, MessageRef, SlackApi } from "./web-api.ts";

interface MessagePosition {
  readonly user?: string;
  readonly ts?: string;
  readonly thread_ts?: string;
  readonly subtype?: string;
}

/** The fields of a `message` event that say whether a message was deleted. */
export interface DeletionFields {
  readonly channel: string;
  readonly subtype?: string;
  readonly deleted_ts?: string;
  readonly previous_message?: MessagePosition;
  readonly message?: MessagePosition;
}

/** What {@link reportDeletedMessage} works with. */
export interface DeletionReport {
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly api: Pick<SlackApi, "messagesAfter">;
  readonly replaced: Pick<ReplacedMessages, "isOwn">;
  readonly receiver: Pick<Receiver, "messagesDeleted" | "knows">;
  /** The first message of a thread says nothing more. */
  readonly retitle: (message: MessageRef, text: string) => void;
}

/**
 * Reports a deleted message to the receiver; `false` if the event is no deletion. Slack does not delete the root of
 * a thread with replies but changes it into a tombstone. What the bot itself has replaced is not reported.
 * @throws ParleyError `store-unavailable`
 * @see https://docs.slack.dev/reference/events/message/message_deleted
 */
export async function reportDeletedMessage(
  event: DeletionFields,
  { identity, api, replaced, receiver, retitle }: DeletionReport,
): Promise<boolean> {
  const { teamId, userId } = identity;
  const isTombstone = event.subtype === "message_changed" && event.message?.subtype === "tombstone";
  if (event.subtype !== "message_deleted" && !isTombstone) return false;
  const deleted = isTombstone ? event.message : event.previous_message;
  const ts = isTombstone ? deleted?.ts : (event.deleted_ts ?? deleted?.ts);
  if (ts === undefined) return true;
  if (replaced.isOwn(ts)) return true;
  const thread = deleted?.thread_ts;
  // Another process of this bot may have replaced it.
  if (deleted?.user === userId && thread !== undefined && thread !== ts) {
    const isReplaced = await inLookupTime(isReplacedIn(api.messagesAfter(event.channel, thread, ts), ts));
    // Not acknowledged: Slack delivers it again. What comes after it in the channel must not wait.
    if (isReplaced === undefined)
      throw new ParleyError("platform-unreachable", "Slack conversations.replies: no response in time");
    if (isReplaced) return true;
  }
  const keys = [toMessageKey(teamId, event.channel, ts)];
  const conversationId = toConversationId(teamId, event.channel, deleted?.thread_ts ?? ts);
  const isRoot = deleted?.thread_ts === undefined || deleted.thread_ts === ts;
  // Without replies the thread is gone, and its title with it.
  const isTitled = isTombstone && isRoot && (await receiver.knows(conversationId));
  await receiver.messagesDeleted(conversationId, keys);
  if (isTitled) retitle({ channel: event.channel, ts }, "");
  // It may have been answered in the channel itself.
  const inChannel = toChannelConversationId(teamId, event.channel);
  const isAtTopLevel = deleted?.thread_ts === undefined && !isDirectMessages(event.channel);
  if (isAtTopLevel && (await receiver.knows(inChannel))) await receiver.messagesDeleted(inChannel, keys);
  return true;
}

/** Whether one of the messages was posted in place of that one. */
async function isReplacedIn(messages: AsyncIterable<SlackMessageInfo>, ts: string): Promise<boolean> {
  for await (const { metadata } of messages) if (metadata?.event_payload?.replaces === ts) return true;
  return false;
}

/**
 * Reports a deleted channel to the receiver. Conversations stored without `within` (by earlier versions, or because
 * only commands ran in them) are then found by the channel in their ids.
 * @throws ParleyError `store-unavailable`
 */
export async function reportDeletedChannel(
  channel: string,
  teamId: string,
  receiver: Pick<Receiver, "placeDeleted" | "conversationDeleted">,
  history: Pick<ConversationHistory, "conversations">,
): Promise<void> {
  await receiver.placeDeleted(toChannelPlace(teamId, channel));
  await deleteConversations(toConversationPrefix(teamId, channel), receiver, history);
  // Its settings are held under the name that access rules have for it.
  await receiver.placeDeleted(toChannelTerm(channel));
}

/**
 * Reports as deleted every conversation whose id begins with `prefix`. `before` is called with each first.
 * @throws ParleyError `store-unavailable`
 */
export async function deleteConversations(
  prefix: string,
  receiver: Pick<Receiver, "conversationDeleted">,
  history: Pick<ConversationHistory, "conversations">,
  before: (conversationId: string) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const reported = new Set<string>();
  for (;;) {
    // The list is limited: what is behind its end comes up when its first part is deleted.
    const listed = await history.conversations(prefix);
    const left = listed.filter(({ conversationId }) => !reported.has(conversationId));
    if (left.length === 0) return;
    for (const { conversationId } of left) {
      reported.add(conversationId);
      await before(conversationId);
      await receiver.conversationDeleted(conversationId);
    }
  }
}
