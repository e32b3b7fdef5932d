import {
  ComponentType,
  type APIEmbed,
  type APIMessage,
  type APIPoll,
  type APIAttachment,
  type APIUser,
} from "discord.js";
import type { Attachment, Author, Json } from "../../../core/events.ts";
import { cutText } from "../../../support/text.ts";
import { toAuthorId } from "../address.ts";

/** Resolves the mentions in a message to names. */
export interface Names {
  readonly botId: string;
  readonly botName: string;
  /** All names of the bot there, with its user name and its nickname. */
  readonly botNames: readonly string[];
  channelName(id: string): string | undefined;
  roleName(id: string): string | undefined;
  /** The bot's own role in a server. People pick it by mistake when they mean the bot. */
  readonly botRoleId: string | undefined;
}

interface MemberName {
  readonly nick?: string | null | undefined;
}

/** Returns the author of a message. The name is the nickname in the server where there is one. */
export function toAuthor(user: APIUser, member?: MemberName | null, locale?: string): Author {
  const name = member?.nick ?? user.global_name ?? user.username;
  const alsoCalled = [user.global_name, user.username].filter(
    (other) => typeof other === "string" && other.toLowerCase() !== name.toLowerCase(),
  );
  return {
    id: toAuthorId(user.id),
    name,
    ...(alsoCalled.length === 0 ? {} : { alsoCalled: [...new Set(alsoCalled)] as string[] }),
    ...(locale === undefined ? {} : { locale }),
  };
}

/** The fields of a message that hold content. Gateway messages have `member` in each mention. */
type ReadableMessage = Pick<APIMessage, "content"> &
  Partial<Pick<APIMessage, "mentions" | "mention_channels">> &
  RichMessage;

/** Returns the words of a message as plain text. Mentions of the bot go, other ones and emoji get names. */
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

/** Returns the text of a message, with its embeds, stickers, poll and components as quotes. */
function toWholeText(message: ReadableMessage, names: Names, isOwn: boolean): string {
  const rich = readRichParts(message, { hasButtons: !isOwn });
  // The bot's own small print is no part of what the model said.
  const content = isOwn ? message.content.replaceAll(/^-# .*(?:\n|$)/gm, "") : message.content;
  return [toPlainText({ ...message, content }, names), ...rich.map(({ label, text }) => quote(label, text))]
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

/** Converts an attachment of `message`, or of a command where that is absent. */
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

/** Returns the content and attachments of a message, forwarded messages included. */
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

/** Returns someone else's words as a Markdown quote, so that the model can tell them apart. */
export function quote(who: string, text: string): string {
  if (text === "") return "";
  const lines = text.split("\n").map((line) => `> ${line}`);
  return `> ${who}:\n${lines.join("\n")}`;
}

/** Only the first message of a forum post has the id of its thread. */
export function isFirstOfPost({ id, channel_id: channelId }: Pick<APIMessage, "id" | "channel_id">): boolean {
  return id === channelId;
}

const titleLabel = "Title of the post";

/** Puts the post's title before the first message of a forum post, which has the id of the post. */
export function withPostTitle(title: string | undefined, text: string): string {
  return [quote(titleLabel, title ?? ""), text].filter((part) => part !== "").join("\n\n");
}

/** Returns the title that {@link withPostTitle} has put before a text. */
export function postTitleOf(text: string): string | undefined {
  const [label, title] = text.split("\n", 2);
  return label === `> ${titleLabel}:` ? title?.replace(/^> /, "") : undefined;
}

/** How much of the embeds, components and poll of one message is read, in characters. */
const maxRichChars = 6000;
/** Nested components are read to this depth. Discord itself allows three levels. */
const maxDepth = 5;

/** The fields of a message that hold content beside its text and files. */
type RichMessage = Partial<Pick<APIMessage, "content" | "embeds" | "components" | "poll" | "sticker_items">>;

/** A piece of a message, with the words that say what it is. */
interface RichPart {
  readonly label: string;
  readonly text: string;
}

/**
 * Returns the embeds, stickers, poll and components of a message as plain text, at most 6,000 characters in
 * all. A longer text ends with "(cut)".
 * @param options `hasButtons` says whether the labels of buttons and selects are content
 */
export function readRichParts(
  { content = "", embeds = [], components = [], poll, sticker_items: stickers = [] }: RichMessage,
  { hasButtons }: { readonly hasButtons: boolean },
): RichPart[] {
  const parts = [
    ...stickers.map(({ name }) => ({ label: "Sticker", text: name })),
    ...(poll === undefined ? [] : [{ label: "Poll", text: toPollText(poll) }]),
    ...embeds.map((embed) => ({ label: "Embed", text: toEmbedText(embed, content) })),
    { label: "Components", text: toComponentText(components, hasButtons, 0).join("\n") },
  ];
  let room = maxRichChars;
  const read: RichPart[] = [];
  for (const part of parts) {
    const text = part.text.trim();
    if (text === "" || room <= 0) continue;
    read.push({ label: part.label, text: cutText(text, room) });
    room -= text.length;
  }
  return read;
}

/** Reads an embed, which is mostly the preview of a link in `content`, or the message of another app. */
function toEmbedText(
  { title, description, url, author, fields = [], footer }: APIEmbed,
  content: string,
): string {
  return joinLines([
    author?.name,
    title,
    url !== undefined && content.includes(url) ? undefined : url,
    description,
    ...fields.map(({ name, value }) => `${name}: ${value}`),
    footer?.text,
  ]);
}

function toPollText({ question, answers, allow_multiselect: isMultiple, results }: APIPoll): string {
  const votes = new Map((results?.answer_counts ?? []).map(({ id, count }) => [id, count]));
  return joinLines([
    question.text,
    ...answers.map(({ answer_id: id, poll_media: { text, emoji } }, index) => {
      const count = votes.get(id);
      const name = [emoji?.name, text].filter((part) => typeof part === "string").join(" ");
      return `${index + 1}. ${name}${count === undefined ? "" : ` (${count === 1 ? "1 vote" : `${count} votes`})`}`;
    }),
    isMultiple ? "(several answers may be chosen)" : undefined,
  ]);
}

/** A component as it may arrive. Discord adds types, and all fields depend on the type. */
interface AnyComponent {
  readonly type?: unknown;
  readonly content?: unknown;
  readonly description?: unknown;
  readonly label?: unknown;
  readonly url?: unknown;
  readonly placeholder?: unknown;
  readonly options?: readonly { readonly label?: unknown }[];
  readonly items?: readonly { readonly description?: unknown }[];
  readonly components?: readonly AnyComponent[];
  readonly component?: AnyComponent;
  readonly accessory?: AnyComponent;
}

function toComponentText(given: readonly unknown[], hasButtons: boolean, depth: number): string[] {
  if (depth > maxDepth) return [];
  return (given as readonly AnyComponent[]).flatMap((component) => {
    const inner = [...(component.components ?? []), component.component ?? [], component.accessory ?? []];
    return [...ownText(component, hasButtons), ...toComponentText(inner.flat(), hasButtons, depth + 1)];
  });
}

function ownText(component: AnyComponent, hasButtons: boolean): string[] {
  const { content, description, items = [], label, url, placeholder, options = [] } = component;
  switch (component.type) {
    case ComponentType.TextDisplay:
      return texts([content]);
    case ComponentType.MediaGallery:
      return texts(items.map((item) => item.description)).map((text) => `[picture: ${text}]`);
    case ComponentType.Thumbnail:
      return texts([description]).map((text) => `[picture: ${text}]`);
    case ComponentType.Button:
      return hasButtons ? texts([label]).map((text) => `[button: ${[text, ...texts([url])].join(" ")}]`) : [];
    case ComponentType.StringSelect: {
      const choices = texts(options.map((option) => option.label)).join(", ");
      return hasButtons ? [`[select: ${[...texts([placeholder]), choices].join(": ")}]`] : [];
    }
    default:
      return [];
  }
}

function texts(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === "string").filter((value) => value !== "");
}

function joinLines(lines: readonly (string | undefined)[]): string {
  return lines.filter((line) => line !== undefined && line !== "").join("\n");
}
