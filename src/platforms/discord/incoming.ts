import type { APIAttachment, APIMessage, APIUser } from "discord.js";
import type { Attachment, Author, Json } from "../../core/events.ts";
import { toAuthorId } from "./address.ts";

/** Names for the mentions in a message. */
export interface Names {
  readonly botId: string;
  readonly botName: string;
  channelName(id: string): string | undefined;
  roleName(id: string): string | undefined;
  /** The bot's own role in a server: people pick it by mistake when they mean the bot. */
  readonly botRoleId: string | undefined;
}

interface MemberName {
  readonly nick?: string | null | undefined;
}

/** The author of a message; the name is the nickname in the server where there is one. */
export function toAuthor(user: APIUser, member?: MemberName | null): Author {
  return { id: toAuthorId(user.id), name: member?.nick ?? user.global_name ?? user.username };
}

/** The fields of a message that hold text. Gateway messages have `member` in each mention. */
type ReadableMessage = Pick<APIMessage, "content"> &
  Partial<Pick<APIMessage, "mentions" | "mention_channels" | "sticker_items">>;

/** A message as plain text: mentions of the bot removed, other mentions and emoji as names. */
function toPlainText(message: ReadableMessage, names: Names): string {
  const userNames = new Map(
    (message.mentions ?? []).map((user) => [
      user.id,
      toAuthor(user, (user as { member?: MemberName }).member).name,
    ]),
  );
  const channelNames = new Map((message.mention_channels ?? []).map((channel) => [channel.id, channel.name]));
  const text = message.content
    .replaceAll(/<@!?(\d+)>/g, (_whole, id: string) =>
      id === names.botId ? "" : `@${userNames.get(id) ?? "someone"}`,
    )
    .replaceAll(/<@&(\d+)>/g, (_whole, id: string) =>
      id === names.botRoleId ? "" : `@${names.roleName(id) ?? "role"}`,
    )
    .replaceAll(
      /<#(\d+)>/g,
      (_whole, id: string) => `#${channelNames.get(id) ?? names.channelName(id) ?? "channel"}`,
    )
    .replaceAll(/<a?(:\w+:)\d+>/g, "$1")
    .replaceAll(/<(\/[^:>]+):\d+>/g, "$1")
    .replaceAll(/<t:(-?\d{1,12})(?::[a-zA-Z])?>/g, (_whole, seconds: string) => toDate(Number(seconds)));
  const stickers = (message.sticker_items ?? []).map((sticker) => `:${sticker.name}:`);
  return [text.trim(), ...stickers].filter((part) => part !== "").join("\n");
}

function toDate(seconds: number): string {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

/** Whether a message mentions the bot: by user, by its role, or as a reply that pings it. */
export function mentionsBot(message: Pick<APIMessage, "mentions" | "mention_roles">, names: Names): boolean {
  return (
    message.mentions.some((user) => user.id === names.botId) ||
    (names.botRoleId !== undefined && message.mention_roles.includes(names.botRoleId))
  );
}

/** Where an attachment can be downloaded. */
export interface AttachmentSource {
  /** Valid for about a day. Fetching its message returns a new one. */
  readonly url: string;
  readonly channelId?: string;
  readonly messageId?: string;
}

/** An attachment of `message`, or of a command where that is absent. */
export function toAttachment(
  attachment: APIAttachment,
  message?: { readonly channelId: string; readonly messageId: string },
): Attachment {
  const source: AttachmentSource = { url: attachment.url, ...message };
  const { content_type: mediaType, duration_secs: seconds } = attachment;
  return {
    id: attachment.id,
    name: attachment.filename,
    sizeBytes: attachment.size,
    ...(mediaType === undefined ? {} : { mediaType: mediaType.split(";")[0] ?? mediaType }),
    ...(seconds === undefined ? {} : { durationMs: Math.round(seconds * 1000) }),
    source: source as unknown as Json,
  };
}

/** The text and attachments of a message, forwarded messages included. */
export function readMessage(
  message: APIMessage,
  names: Names,
): { readonly text: string; readonly attachments: readonly Attachment[] } {
  const source = { channelId: message.channel_id, messageId: message.id };
  const forwarded = (message.message_snapshots ?? []).map((snapshot) => snapshot.message);
  const texts = [
    toPlainText(message, names),
    ...forwarded.map((one) => quote("Forwarded message", toPlainText(one, names))),
  ];
  return {
    text: texts.filter((text) => text !== "").join("\n\n"),
    attachments: [message, ...forwarded].flatMap((one) =>
      (one.attachments ?? []).map((attachment) => toAttachment(attachment, source)),
    ),
  };
}

/** Someone else's words as a Markdown quote, so that the model can tell them apart. Empty for empty text. */
export function quote(who: string, text: string): string {
  if (text === "") return "";
  const lines = text.split("\n").map((line) => `> ${line}`);
  return `> ${who}:\n${lines.join("\n")}`;
}
