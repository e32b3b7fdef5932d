import type { Clock } from "../../../core/clock.ts";
import type { Attachment } from "../../../core/events.ts";
import type { ConversationHistory, Receiver, EditedMessage } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { inTime, systemClock } from "../../../support/clock.ts";
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
import { retryPlatformCall } from "../../delivery/receive-patiently.ts";
import { withLookupTime } from "../errors.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { createRecent } from "../../../support/recent.ts";

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
  readonly replaced: Pick<ReplacedMessages, "isOwn">;
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
  { teamId, replaced, receiver, retitle }: DeletionReport,
): Promise<boolean> {
  const isTombstone = event.subtype === "message_changed" && event.message?.subtype === "tombstone";
  if (event.subtype !== "message_deleted" && !isTombstone) return false;
  const deleted = isTombstone ? event.message : event.previous_message;
  const ts = isTombstone ? deleted?.ts : (event.deleted_ts ?? deleted?.ts);
  if (ts === undefined || replaced.isOwn(ts)) return true;
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

/** The end of a reply waits so long for the removal of its previews. */
const withinMs = 5000;
/** What Slack has not removed by then is left. */
const removedWithinMs = 5 * 60_000;
const maxRemoved = 2000;

/** These are messages of this bot in whose place others were posted. */
export interface ReplacedMessages {
  /**
   * Removes messages that no saved address contains any more. It resolves when that is done or has taken five
   * seconds; what is left then is removed later. It never rejects.
   */
  remove(refs: readonly MessageRef[]): Promise<void>;
  /** Returns whether the bot has removed that message itself, so that no person has deleted an answer. */
  isOwn(ts: string): boolean;
  /** Removes nothing more. */
  close(): void;
}

export function createReplacedMessages(
  api: Pick<SlackApi, "remove">,
  log: Log,
  clock: Clock,
): ReplacedMessages {
  const own = createRecent(maxRemoved);
  const closing = new AbortController();
  const { signal } = closing;

  async function removeOne(ref: MessageRef): Promise<void> {
    try {
      await retryPlatformCall(
        () => api.remove(ref, { urgency: "final", withinMs, signal }),
        clock.monotonic() + removedWithinMs,
        signal,
        clock,
      );
    } catch (error) {
      log.debug({ channel: ref.channel, err: error }, "replaced message not removed");
    }
  }

  return {
    async remove(refs) {
      for (const { ts } of refs) own.set(ts, true);
      if (refs.length > 0) await inTime(Promise.all(refs.map(removeOne)), withinMs, { clock });
    },
    isOwn: (ts) => own.has(ts),
    close: () => closing.abort(),
  };
}
