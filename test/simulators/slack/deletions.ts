import { messageEvents, type Installation } from "./installation.ts";
import type { MethodContext } from "./methods.ts";
import type { Fields, SlackChannel, SlackMessage } from "./workspace.ts";

const deletedEvents = {
  channel: { event: "channel_deleted", scope: "channels:read" },
  group: { event: "group_deleted", scope: "groups:read" },
} as const;

function toDeletedJson(message: SlackMessage): Fields {
  return {
    type: "message",
    user: message.user,
    text: message.text,
    ts: message.ts,
    ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
  };
}

/**
 * Deletes a message. A root with replies becomes a tombstone by Slackbot, and its event is a change.
 * @see https://docs.slack.dev/reference/events/message/message_deleted
 */
export function deleteMessage(
  { workspace, hub }: MethodContext,
  installation: Installation,
  channel: SlackChannel,
  ts: string,
): void {
  const index = channel.messages.findIndex(
    (message) => message.ts === ts && message.ephemeralTo === undefined,
  );
  const message = channel.messages[index];
  if (message === undefined) throw new Error(`no message ${ts}`);
  const hasReplies = channel.messages.some(
    (other) => other.threadTs === ts && other.ephemeralTo === undefined,
  );
  const previous = toDeletedJson({ ...message, ...(hasReplies ? { threadTs: ts } : {}) });
  const text = "This message was deleted.";
  if (hasReplies) channel.messages[index] = { ...message, user: "USLACKBOT", text, blocks: [], files: [] };
  else channel.messages.splice(index, 1);
  if (!installation.subscribesTo(messageEvents[channel.kind])) return;
  if (!channel.members.has(workspace.botUserId)) return;
  const eventTs = workspace.nextTs();
  const base = { type: "message", hidden: true, channel: channel.id, channel_type: channel.kind };
  const common = { ...base, ts: eventTs, event_ts: eventTs, previous_message: previous };
  if (hasReplies) {
    const tombstone = { ...previous, subtype: "tombstone", user: "USLACKBOT", text, hidden: true };
    hub.sendEvent({ ...common, subtype: "message_changed", message: tombstone });
  } else {
    hub.sendEvent({ ...common, subtype: "message_deleted", deleted_ts: ts });
  }
}

/** Deletes a channel with its messages, which is one event. */
export function deleteChannel(
  { workspace, hub }: MethodContext,
  installation: Installation,
  channel: SlackChannel,
): void {
  if (channel.kind !== "channel" && channel.kind !== "group") throw new Error("cannot be deleted");
  const { event, scope } = deletedEvents[channel.kind];
  workspace.channels.delete(channel.id);
  if (!channel.members.has(workspace.botUserId)) return;
  if (!installation.subscribesTo(event) || !workspace.scopes.has(scope)) return;
  hub.sendEvent({ type: event, channel: channel.id, event_ts: workspace.nextTs() });
}
