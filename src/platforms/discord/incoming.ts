import type { APIAttachment, APIMessage, APIUser } from "discord.js";
import type { Attachment, Author, Json } from "../../core/events.ts";
import { toAuthorId } from "./address.ts";
import { readRichParts, type RichMessage } from "./rich-content.ts";

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
export function toAuthor(user: APIUser, member?: MemberName | null, locale?: string): Author {
  return {
    id: toAuthorId(user.id),
    name: member?.nick ?? user.global_name ?? user.username,
    ...(locale === undefined ? {} : { locale }),
  };
}

/** The fields of a message that hold content. Gateway messages have `member` in each mention. */
type ReadableMessage = Pick<APIMessage, "content"> &
  Partial<Pick<APIMessage, "mentions" | "mention_channels">> &
  RichMessage;

/** The words of a message as plain text: mentions of the bot removed, other mentions and emoji as names. */
export function toPlainText(message: ReadableMessage, names: Names): string {
  const userNames = new Map(
    (message.mentions ?? []).map((user) => [
      user.id,
      toAuthor(user, (user as { member?: MemberName }).member).name,
    ]),
  );
  const channelNames = new Map((message.mention_channels ?? []).map((channel) => [channel.id, channel.name]));
  return message.content
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
    .replaceAll(/<(\/[^:<>]+):\d+>/g, "$1")
    .replaceAll(/<t:(-?\d{1,12})(?::[a-zA-Z])?>/g, (_whole, seconds: string) => toDate(Number(seconds)))
    .trim();
}

/** The text of a message, with its embeds, stickers, poll and components as quotes. */
function toWholeText(message: ReadableMessage, names: Names, isOwn: boolean): string {
  const rich = readRichParts(message, { hasButtons: !isOwn });
  return [toPlainText(message, names), ...rich.map(({ label, text }) => quote(label, text))]
    .filter((part) => part !== "")
    .join("\n\n");
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
  const { content_type: mediaType, duration_secs: seconds, description: altText } = attachment;
  return {
    id: attachment.id,
    name: attachment.filename,
    sizeBytes: attachment.size,
    ...(mediaType === undefined ? {} : { mediaType: mediaType.split(";")[0] ?? mediaType }),
    ...(altText === undefined || altText === "" ? {} : { altText }),
    ...(seconds === undefined ? {} : { durationMs: Math.round(seconds * 1000) }),
    source: source as unknown as Json,
  };
}

/** The content and attachments of a message, forwarded messages included. */
export function readMessage(
  message: APIMessage,
  names: Names,
): { readonly text: string; readonly attachments: readonly Attachment[] } {
  const source = { channelId: message.channel_id, messageId: message.id };
  const forwarded = (message.message_snapshots ?? []).map((snapshot) => snapshot.message);
  const texts = [
    toWholeText(message, names, message.author.id === names.botId),
    ...forwarded.map((one) => quote("Forwarded message", toWholeText(one, names, false))),
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
