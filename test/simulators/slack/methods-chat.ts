import { toThreadFields } from "./parent-user.ts";
import { checkMessageBlocks } from "./blocks.ts";
import { deleteMessage } from "./deletions.ts";
import { changeByStream } from "./sessions.ts";
import { isStreaming } from "./streams.ts";
import { checkTotal } from "./tables.ts";
import {
  checkThread,
  json,
  writableChannel,
  need,
  tsPattern,
  type Method,
  type MethodContext,
} from "./methods.ts";
import { hasReplies, SlackApiError, type Fields, type SlackMessage, toText } from "./workspace.ts";

const maxTextChars = 40_000;
const maxUpdateBytes = 4000;
const maxMarkdownChars = 12_000;

/** Returns the length after Slack has escaped unescaped characters. Entities stay as they are. */
function escapedBytes(text: string): number {
  const escaped = text
    .replaceAll(/&(?!lt;|gt;|amp;)/g, "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
  return Buffer.byteLength(escaped);
}

/** Slack drops this id. @see https://docs.slack.dev/reference/block-kit/blocks/markdown-block */
function withoutMarkdownId(block: Fields): Fields {
  if (block["type"] !== "markdown") return block;
  const { block_id: _id, ...rest } = block;
  return rest;
}

/** Reads metadata, which is a type and an object. */
function readMetadata(args: Fields): unknown {
  const metadata = json(args, "metadata") as Fields | undefined;
  if (metadata === undefined) return undefined;
  const isValid = typeof metadata["event_type"] === "string" && typeof metadata["event_payload"] === "object";
  if (!isValid) throw new SlackApiError("invalid_metadata_format");
  return metadata;
}

function readContent(args: Fields, context: MethodContext): { text: string; blocks: Fields[] } {
  const blocks = (json(args, "blocks") ?? []) as Fields[];
  const markdown = args["markdown_text"] === undefined ? undefined : toText(args["markdown_text"]);
  if (markdown !== undefined) {
    if (args["text"] !== undefined || blocks.length > 0) throw new SlackApiError("markdown_text_conflict");
    if (markdown.length > maxMarkdownChars) throw new SlackApiError("msg_too_long");
    return { text: markdown, blocks: [{ type: "markdown", text: markdown }] };
  }
  const text = toText(args["text"]);
  if (text === "" && blocks.length === 0) throw new SlackApiError("no_text");
  checkMessageBlocks(blocks, context.refusedMarkdown);
  checkTotal(blocks);
  return { text: text.slice(0, maxTextChars), blocks: blocks.map(withoutMarkdownId) };
}

/** Whether Slack unfurls links. Media is unfurled by default, other links on request. */
function previews(args: Fields): boolean {
  return toText(args["unfurl_media"], "true") !== "false" || toText(args["unfurl_links"], "false") === "true";
}

function toMessageJson({ workspace }: MethodContext, message: SlackMessage): Fields {
  return {
    type: "message",
    user: message.user,
    bot_id: workspace.botId,
    app_id: workspace.appId,
    team: workspace.teamId,
    text: message.text,
    ts: message.ts,
    ...toThreadFields(workspace, message),
    ...(message.blocks.length === 0 ? {} : { blocks: message.blocks }),
  };
}

/** Announces a message. A bot receives events of its own messages too. */
function announce(context: MethodContext, message: SlackMessage): void {
  const channel = context.workspace.channels.get(message.channel);
  if (channel === undefined) return;
  context.hub.sendEvent({
    ...toMessageJson(context, message),
    channel: channel.id,
    channel_type: channel.kind,
    event_ts: message.ts,
  });
}

function announceEdit(context: MethodContext, message: SlackMessage): void {
  const channel = context.workspace.channels.get(message.channel);
  if (channel === undefined) return;
  context.hub.sendEvent({
    type: "message",
    subtype: "message_changed",
    hidden: true,
    channel: channel.id,
    channel_type: channel.kind,
    ts: context.workspace.nextTs(),
    event_ts: message.ts,
    message: toMessageJson(context, message),
    previous_message: toMessageJson(context, message),
  });
}

const postMessage: Method = (args, context) => {
  const { workspace } = context;
  const target = need(args, "channel");
  const id = workspace.users.has(target) ? workspace.directMessagesOf(target).id : target;
  const channel = writableChannel(context, id);
  const threadTs = checkThread(context, channel, args["thread_ts"]);
  const content = readContent(args, context);
  const message = workspace.addMessage({
    channel: channel.id,
    user: workspace.botUserId,
    threadTs,
    ...content,
    previewsLinks: previews(args),
    metadata: readMetadata(args),
  });
  announce(context, message);
  return { channel: channel.id, ts: message.ts, message: toMessageJson(context, message) };
};

/**
 * Posts a message for one member, until their client reloads. A thread shows it only if it has replies.
 * @see https://docs.slack.dev/reference/methods/chat.postEphemeral
 */
const postEphemeral: Method = (args, context) => {
  const { workspace } = context;
  const channel = writableChannel(context, need(args, "channel"));
  const user = need(args, "user");
  if (!workspace.users.has(user)) throw new SlackApiError("user_not_found");
  if (!channel.members.has(user)) throw new SlackApiError("user_not_in_channel");
  const threadTs = checkThread(context, channel, args["thread_ts"]);
  const content = readContent(args, context);
  const isShown = threadTs === undefined || hasReplies(workspace, channel.id, threadTs);
  if (!isShown) return { message_ts: workspace.nextTs() };
  const message = workspace.addMessage({
    channel: channel.id,
    user: workspace.botUserId,
    ephemeralTo: user,
    threadTs,
    ...content,
  });
  return { message_ts: message.ts };
};

function ownMessage(args: Fields, context: MethodContext): SlackMessage {
  const channel = writableChannel(context, need(args, "channel"));
  const ts = need(args, "ts");
  if (!tsPattern.test(ts)) throw new SlackApiError("message_not_found");
  const message = context.workspace.findMessage(channel.id, ts);
  if (message === undefined) throw new SlackApiError("message_not_found");
  return message;
}

const update: Method = (args, context) => {
  const message = ownMessage(args, context);
  if (message.user !== context.workspace.botUserId) throw new SlackApiError("cant_update_message");
  if (isStreaming(message, context.clock)) throw new SlackApiError("streaming_state_conflict");
  const content = readContent(args, context);
  if (escapedBytes(content.text) > maxUpdateBytes) throw new SlackApiError("msg_too_long");
  const metadata = readMetadata(args);
  // An edit repairs a message whose stream has died.
  if (message.stream !== undefined) message.stream = { ...message.stream, open: false };
  message.previewsLinks = false;
  message.text = content.text;
  message.blocks = content.blocks;
  if (metadata !== undefined) message.metadata = metadata;
  message.edits += 1;
  announceEdit(context, message);
  return {
    channel: message.channel,
    ts: message.ts,
    text: message.text,
    message: toMessageJson(context, message),
  };
};

const startStream: Method = (args, context) => {
  const channel = writableChannel(context, need(args, "channel"));
  const threadTs = checkThread(context, channel, need(args, "thread_ts"));
  if (channel.kind !== "im") {
    if (args["recipient_user_id"] === undefined) throw new SlackApiError("missing_recipient_user_id");
    if (args["recipient_team_id"] === undefined) throw new SlackApiError("missing_recipient_team_id");
  }
  const text = toText(args["markdown_text"]);
  if (text.length > maxMarkdownChars) throw new SlackApiError("msg_too_long");
  const message = context.workspace.addMessage({
    channel: channel.id,
    user: context.workspace.botUserId,
    threadTs,
    text,
    previewsLinks: true,
    stream: { startedAt: context.clock.now(), open: true },
  });
  changeByStream(context, message, "processing");
  announce(context, message);
  return { channel: channel.id, ts: message.ts };
};

/** Returns the message of a live stream and the text to append. Nothing is changed yet. */
function openStream(args: Fields, context: MethodContext): { message: SlackMessage; text: string } {
  const message = ownMessage(args, context);
  if (!isStreaming(message, context.clock)) throw new SlackApiError("message_not_in_streaming_state");
  const text = toText(args["markdown_text"]);
  if (text.length > maxMarkdownChars) throw new SlackApiError("msg_too_long");
  if (context.refusedMarkdown.some((words) => (message.text + text).includes(words)))
    throw new SlackApiError("invalid_blocks");
  return { message, text };
}

const appendStream: Method = (args, context) => {
  const { message, text } = openStream(args, context);
  if (args["markdown_text"] === undefined && args["chunks"] === undefined) throw new SlackApiError("no_text");
  message.text += text;
  return { channel: message.channel, ts: message.ts };
};

const stopStream: Method = (args, context) => {
  const { message, text } = openStream(args, context);
  const blocks = (json(args, "blocks") ?? []) as Fields[];
  checkMessageBlocks(blocks);
  checkTotal(blocks);
  const metadata = readMetadata(args);
  changeByStream(context, message, toText(args["session_status"] ?? "active"));
  message.text += text;
  message.stream = { startedAt: message.stream?.startedAt ?? 0, open: false };
  if (message.text !== "") message.blocks = [{ type: "markdown", text: message.text }];
  message.blocks.push(...blocks.map(withoutMarkdownId));
  if (metadata !== undefined) message.metadata = metadata;
  announceEdit(context, message);
  return { channel: message.channel, ts: message.ts, message: toMessageJson(context, message) };
};

/** Deletes one of the app's own messages. @see https://docs.slack.dev/reference/methods/chat.delete */
const deleteOwn: Method = (args, context) => {
  const message = ownMessage(args, context);
  if (message.user !== context.workspace.botUserId) throw new SlackApiError("cant_delete_message");
  const channel = writableChannel(context, message.channel);
  deleteMessage(context, context.installation, channel, message.ts);
  return { channel: message.channel, ts: message.ts };
};

/** The `chat.*` methods with the scope that each needs. */
export const chatMethods: Readonly<Record<string, { readonly scope: string; readonly run: Method }>> = {
  "chat.postMessage": { scope: "chat:write", run: postMessage },
  "chat.postEphemeral": { scope: "chat:write", run: postEphemeral },
  "chat.delete": { scope: "chat:write", run: deleteOwn },
  "chat.update": { scope: "chat:write", run: update },
  "chat.startStream": { scope: "chat:write", run: startStream },
  "chat.appendStream": { scope: "chat:write", run: appendStream },
  "chat.stopStream": { scope: "chat:write", run: stopStream },
};
