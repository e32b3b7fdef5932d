import type { Clock } from "../../core/clock.ts";
import type { Attachment } from "../../core/events.ts";
import type { EditedMessage, Receiver } from "../../core/platform.ts";
import { systemClock } from "../../support/clock.ts";
import { toChannelConversationId, toConversationId, toMessageKey } from "./address.ts";
import { withLookupTime } from "./lookup-time.ts";
import type { SlackMessageInfo } from "./message-info.ts";
import type { MessageRef } from "./web-api.ts";

/** A message in a `message_changed` event. `edited`: its author's last edit. */
interface ChangedMessage extends SlackMessageInfo {
  readonly subtype?: string;
  readonly edited?: { readonly ts: string };
}

/** The fields of a `message` event that say whether a message was edited. */
export interface EditFields {
  readonly channel: string;
  readonly subtype?: string;
  /** When the event happened: to the microsecond, while `edited.ts` is known to the second. */
  readonly event_ts?: string;
  readonly message?: Partial<ChangedMessage>;
  readonly previous_message?: Partial<ChangedMessage>;
}

/** What {@link reportEditedMessage} works with. */
export interface EditReport {
  readonly teamId: string;
  /** Whether a person wrote it. */
  readonly isByPerson: (message: ChangedMessage) => boolean;
  /** Whether another app posted it. */
  readonly isByApp: (message: ChangedMessage) => boolean;
  readonly read: (
    message: SlackMessageInfo,
  ) => Promise<{ readonly text: string; readonly attachments: readonly Attachment[] }>;
  readonly receiver: Pick<Receiver, "messageEdited">;
  /**
   * A person's message of which nothing is known was edited: accepts it in its new form. `editedAt`: Unix milliseconds.
   * `duplicate`: its first form has been accepted meanwhile.
   */
  readonly onUnknown: (
    message: ChangedMessage,
    editedAt: number,
  ) => Promise<"accepted" | "duplicate" | undefined>;
  /** Default: the time of this process. */
  readonly clock?: Clock | undefined;
  /** The first message of a thread says something else. */
  readonly retitle: (message: MessageRef, text: string) => void;
}

/**
 * Reports an edited message of a person or another app to the receiver; `false` if the event is no change of a message. A
 * message also changes when Slack adds the preview of a link to it, and when replies to it are counted: then its words
 * stay the same. Of what an app changes nothing but its content says so.
 * @throws ParleyError `store-unavailable`
 * @see https://docs.slack.dev/reference/events/message/message_changed
 */
export async function reportEditedMessage(
  event: EditFields,
  { teamId, isByPerson, isByApp, read, receiver, onUnknown, retitle, clock = systemClock }: EditReport,
): Promise<boolean> {
  if (event.subtype !== "message_changed") return false;
  const { channel, message, previous_message: before } = event;
  if (message === undefined || !hasTs(message)) return true;
  const isReported = isByPerson(message)
    ? isEdited(message, before)
    : isByApp(message) && contentOf(message) !== contentOf(before ?? {});
  if (!isReported) return true;
  let text: string | undefined;
  // With its microseconds, which order edits.
  const editedAt = Number(event.event_ts ?? message.edited?.ts ?? message.ts) * 1000;
  const edited: EditedMessage = {
    key: toMessageKey(teamId, channel, message.ts),
    editedAt,
    conversationIds: [
      toConversationId(teamId, channel, message.thread_ts ?? message.ts),
      toChannelConversationId(teamId, channel),
    ],
    // It may be called later.
    async read() {
      const content = await withLookupTime(clock, () => read(message));
      ({ text } = content);
      return content;
    },
  };
  let outcome = await receiver.messageEdited(edited);
  if (outcome === "unknown" && isByPerson(message) && (await onUnknown(message, editedAt)) === "duplicate")
    outcome = await receiver.messageEdited(edited);
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
  // A second edit in the same second.
  return message.text !== before.text || idsOf(message) !== idsOf(before);
}

/** What an app's message shows. */
function contentOf({ text, blocks, attachments, files }: Partial<ChangedMessage>): string {
  return JSON.stringify([text, blocks, attachments, files?.map(({ id }) => id)]);
}

function idsOf({ files = [] }: Partial<ChangedMessage>): string {
  return files.map(({ id }) => id).join(" ");
}
