import type { Clock } from "../../../core/clock.ts";
import type { Attachment } from "../../../core/events.ts";
import type { ConversationHistory, Receiver, EditedMessage } from "../../../core/platform.ts";
import { systemClock } from "../../../support/clock.ts";
import {
  isDirectMessages,
  toChannelConversationId,
  toChannelPlace,
  toChannelTerm,
  toConversationId,
  toConversationPrefix,
  toMessageKey,
  type SlackMessageInfo,
  type MessageRef,
} from "../address.ts";
import { withLookupTime } from "../errors.ts";

/** This is a message in a `message_changed` event. The field `edited` is its author's last edit. */
interface ChangedMessage extends SlackMessageInfo {
  readonly subtype?: string;
  readonly edited?: { readonly ts: string };
}

/** These fields of a `message` event say whether a message was edited. */
export interface EditFields {
  readonly channel: string;
  readonly subtype?: string;
  /** The event happened at this time, to the microsecond, while `edited.ts` is known to the second. */
  readonly event_ts?: string;
  readonly message?: Partial<ChangedMessage>;
  readonly previous_message?: Partial<ChangedMessage>;
}

interface EditReport {
  readonly teamId: string;
  /** Returns whether a person wrote the message. */
  readonly isByPerson: (message: ChangedMessage) => boolean;
  /** Returns whether another app posted the message. */
  readonly isByApp: (message: ChangedMessage) => boolean;
  readonly read: (
    message: SlackMessageInfo,
  ) => Promise<{ readonly text: string; readonly attachments: readonly Attachment[] }>;
  readonly receiver: Pick<Receiver, "messageEdited">;
  /**
   * Accepts a message of a person in its edited form, where nothing is known of its first form. The time
   * `editedAt` is in Unix milliseconds. The result `duplicate` means that the first form has been accepted
   * meanwhile.
   */
  readonly onUnknown: (
    message: ChangedMessage,
    editedAt: number,
  ) => Promise<"accepted" | "duplicate" | undefined>;
  readonly clock?: Clock | undefined;
  /** Whether a person's message is not for the bot as it is now. */
  readonly isToOthers: (message: ChangedMessage) => Promise<boolean>;
  /** Has it read with the next question. */
  readonly hearAside: (message: ChangedMessage) => Promise<void>;
  /** The first message of a thread says something else. */
  readonly retitle: (message: MessageRef, text: string) => void;
}

/**
 * Reports an edited message of a person or another app to the receiver, and returns `false` if the event is
 * no change of a message. A message also changes when Slack adds the preview of a link to it, and when
 * replies to it are counted; then its words stay the same. Only its content says that an app's message was
 * changed.
 * @throws ParleyError `store-unavailable`
 * @see https://docs.slack.dev/reference/events/message/message_changed describes the event.
 */
export async function reportEditedMessage(event: EditFields, how: EditReport): Promise<boolean> {
  const { teamId, isByPerson, isByApp, read, receiver, onUnknown, retitle, clock = systemClock } = how;
  if (event.subtype !== "message_changed") return false;
  const { channel, message, previous_message: before } = event;
  if (message === undefined || !hasTs(message)) return true;
  const isReported = isByPerson(message)
    ? isEdited(message, before)
    : isByApp(message) && contentOf(message) !== contentOf(before ?? {});
  if (!isReported) return true;
  let text: string | undefined;
  let isAside = false;
  // The microseconds of this time order edits.
  const editedAt = Number(event.event_ts ?? message.edited?.ts ?? message.ts) * 1000;
  const edited: EditedMessage = {
    key: toMessageKey(teamId, channel, message.ts),
    editedAt,
    conversationIds: [
      toConversationId(teamId, channel, message.thread_ts ?? message.ts),
      toChannelConversationId(teamId, channel),
    ],
    // The receiver may call this later.
    async read() {
      const content = await withLookupTime(clock, () => read(message));
      ({ text } = content);
      isAside = isByPerson(message) && (await how.isToOthers(message));
      return isAside ? { ...content, isAside } : content;
    },
  };
  let outcome = await receiver.messageEdited(edited);
  if (outcome === "unknown" && isByPerson(message) && (await onUnknown(message, editedAt)) === "duplicate")
    outcome = await receiver.messageEdited(edited);
  if (outcome === "edited" && isAside) await how.hearAside(message);
  const isRoot = isByPerson(message) && (message.thread_ts ?? message.ts) === message.ts;
  if (outcome === "edited" && isRoot && text !== undefined) retitle({ channel, ts: message.ts }, text);
  return true;
}

function hasTs(message: Partial<ChangedMessage>): message is ChangedMessage {
  return message.ts !== undefined;
}

function isEdited(message: ChangedMessage, before: EditFields["message"]): boolean {
  if (message.edited === undefined) return false;
  if (before === undefined || message.edited.ts !== before.edited?.ts) return true;
  // The text tells a second edit in the same second.
  return message.text !== before.text || idsOf(message) !== idsOf(before);
}

/** Returns what an app's message shows. */
function contentOf({ text, blocks, attachments, files }: Partial<ChangedMessage>): string {
  return JSON.stringify([text, blocks, attachments, files?.map(({ id }) => id)]);
}

function idsOf({ files = [] }: Partial<ChangedMessage>): string {
  return files.map(({ id }) => id).join(" ");
}

interface MessagePosition {
  readonly user?: string;
  readonly ts?: string;
  readonly thread_ts?: string;
  readonly subtype?: string;
}

/** These fields of a `message` event say whether a message was deleted. */
export interface DeletionFields {
  readonly channel: string;
  readonly subtype?: string;
  readonly deleted_ts?: string;
  readonly previous_message?: MessagePosition;
  readonly message?: MessagePosition;
}

interface DeletionReport {
  readonly teamId: string;
  /** Returns whether the bot has removed a message itself. */
  readonly isOwnRemoval: (ts: string) => boolean;
  readonly receiver: Pick<Receiver, "messagesDeleted" | "knows">;
  /** This is called when the first message of a thread says nothing more. */
  readonly retitle: (message: MessageRef, text: string) => void;
}

/**
 * Reports a deleted message to the receiver, and returns `false` if the event is no deletion. Slack does not
 * delete the root of a thread with replies but changes it into a tombstone. What this process has replaced is
 * not reported; what another one has is named by nothing that is stored.
 * @throws ParleyError `store-unavailable`
 * @see https://docs.slack.dev/reference/events/message/message_deleted describes the event.
 */
export async function reportDeletedMessage(
  event: DeletionFields,
  { teamId, isOwnRemoval, receiver, retitle }: DeletionReport,
): Promise<boolean> {
  const isTombstone = event.subtype === "message_changed" && event.message?.subtype === "tombstone";
  if (event.subtype !== "message_deleted" && !isTombstone) return false;
  const deleted = isTombstone ? event.message : event.previous_message;
  const ts = isTombstone ? deleted?.ts : (event.deleted_ts ?? deleted?.ts);
  if (ts === undefined || isOwnRemoval(ts)) return true;
  const keys = [toMessageKey(teamId, event.channel, ts)];
  const conversationId = toConversationId(teamId, event.channel, deleted?.thread_ts ?? ts);
  const isRoot = deleted?.thread_ts === undefined || deleted.thread_ts === ts;
  // A thread without replies is gone, and its title with it.
  const isTitled = isTombstone && isRoot && (await receiver.knows(conversationId));
  await receiver.messagesDeleted(conversationId, keys);
  if (isTitled) retitle({ channel: event.channel, ts }, "");
  // The message may have been answered in the channel itself.
  const inChannel = toChannelConversationId(teamId, event.channel);
  const isAtTopLevel = deleted?.thread_ts === undefined && !isDirectMessages(event.channel);
  if (isAtTopLevel && (await receiver.knows(inChannel))) await receiver.messagesDeleted(inChannel, keys);
  return true;
}

/**
 * Reports a deleted channel to the receiver. Conversations that are stored without `within` are found by the
 * channel in their ids.
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
  // The settings of the channel are held under the name that access rules have for it.
  await receiver.placeDeleted(toChannelTerm(channel));
}

/**
 * Reports every conversation whose id begins with `prefix` as deleted, and calls `before` with each first.
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
