import { toPieces, type SpokenMessage } from "../../../core/addressee.ts";
import type { Attachment } from "../../../core/events.ts";
import type { Log } from "../../../core/telemetry.ts";
import { cutText } from "../../../support/text.ts";
import type { SlackFileInfo, SlackMessageInfo } from "../address.ts";
import { inLookupTime } from "../errors.ts";
import { isUnresolved, toAttachment } from "./files.ts";
import { escapeText } from "../reply/escape-markdown.ts";
import { sourcesBlock } from "../reply/message-blocks.ts";
import type { Names } from "../people.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";

/** This is what a message says, with its files. */
export interface ReadMessage {
  readonly text: string;
  readonly attachments: readonly Attachment[];
}

/** The reader reads messages: the words, what is forwarded, previewed or posted in blocks, and the files. */
export type MessageReader = (message: SlackMessageInfo) => Promise<ReadMessage>;

export function createMessageReader(options: {
  readonly api: Pick<SlackApi, "fileInfo">;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly names: Names;
  readonly log: Log;
}): MessageReader {
  const { api, identity, names, log } = options;

  const toText = (markup: string): Promise<string> =>
    toPlainText(markup, {
      botUserId: identity.userId,
      nameOf: (id) => names.nameOf(id),
      channelNameOf: (id) => names.channelNameOf(id),
    });

  async function resolveFile(file: SlackFileInfo): Promise<SlackFileInfo> {
    if (!isUnresolved(file)) return file;
    try {
      return (await inLookupTime(api.fileInfo(file.id))) ?? file;
    } catch (error) {
      // The download looks the file up again and shows a failure to the person.
      log.warn({ file: file.id, err: error }, "file lookup failed");
      return file;
    }
  }

  return async (message) => {
    // The sources below an answer of the bot are no part of what the model said.
    const blocks = toNodes(message.blocks).filter((block) => block["block_id"] !== sourcesBlock);
    const isOwn = message.user === identity.userId;
    const rich = readRichContent(isOwn ? { ...message, blocks } : message);
    const [text, files] = await Promise.all([
      toText(rich.markup),
      Promise.all([...(message.files ?? []), ...rich.files].map(resolveFile)),
    ]);
    return { text, attachments: files.map((file) => toAttachment(file, identity.teamId)) };
  };
}

/** A label may hold `>` as it was typed, between spaces; elsewhere it is an entity. */
const control = /<((?:https?:|mailto:)[^<>|\s]*\|[^<>\n]*(?: > [^<>\n]*)+|[^<>]+)>/g;

/** The names of so many mentions in one message are looked up, since each may be a request. */
const maxNames = 20;

/** These options say how {@link toPlainText} shows mentions. */
interface PlainTextOptions {
  /** Mentions of this user are removed. */
  readonly botUserId: string;
  nameOf(userId: string): Promise<string>;
  /** Returns the name of a public channel that Slack sends without its name. By default ids are shown. */
  channelNameOf?(channelId: string): Promise<string | undefined>;
}

/**
 * Returns Slack's markup as a person reads it: the bot's mention is removed, `<@U1>` becomes `@Ana`,
 * `<#C1|ideas>` becomes `#ideas`, links become their address, and finally entities are decoded. Past the
 * first 20 people mentions show ids.
 * @see https://docs.slack.dev/messaging/formatting-message-text#retrieving-messages describes the markup.
 */
export async function toPlainText(text: string, options: PlainTextOptions): Promise<string> {
  const ids = new Set<string>();
  for (const [, inside = ""] of text.matchAll(control)) {
    const id = mentionedUser(inside);
    if (id !== undefined && id !== options.botUserId && !inside.includes("|")) ids.add(id);
    const channelId = unnamedChannel(inside);
    if (channelId !== undefined) ids.add(channelId);
  }
  const found = [...ids].slice(0, maxNames).map(async (id) => {
    const name = await (/^[UW]/.test(id) ? options.nameOf(id) : options.channelNameOf?.(id));
    return [id, name] as const;
  });
  const names = new Map(await Promise.all(found));
  const ownMention = new RegExp(`<@${options.botUserId}(?:\\|[^<>]*)?>[ \\t]*[:,]?[ \\t]*`, "g");
  return text
    .replace(ownMention, "")
    .replace(control, (_, inside: string) =>
      toWords(inside, names.get(mentionedUser(inside) ?? unnamedChannel(inside) ?? "")),
    )
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&amp;", "&")
    .trim();
}

/** Returns whether the text mentions that user. */
export function mentions(text: string, userId: string): boolean {
  return text.includes(`<@${userId}>`) || text.includes(`<@${userId}|`);
}

/** Mentions of people, groups and everybody. */
const anyMention = /<(?:@[UW][A-Z0-9]+|!subteam\^[A-Z0-9]+|!(?:here|channel|everyone))(?:\|[^<>]*)?>/g;

/** What decides whether a message is for the bot. Slack has no replies within a thread. */
export function toSpoken(
  text: string,
  {
    author,
    isDirect,
    botUserId,
  }: Pick<SpokenMessage, "author"> & {
    readonly isDirect: boolean;
    readonly botUserId: string;
  },
): SpokenMessage {
  const pieces = toPieces(text, anyMention, (found) => mentions(found, botUserId));
  return { author, pieces, isCall: isDirect || mentions(text, botUserId) };
}

function mentionedUser(inside: string): string | undefined {
  return /^@([UW][A-Z0-9]+)/.exec(inside)?.[1];
}

/** The label of a channel is empty or absent in messages of today. */
function unnamedChannel(inside: string): string | undefined {
  return /^#([CG][A-Z0-9]+)\|?$/.exec(inside)?.[1];
}

function toWords(inside: string, name: string | undefined): string {
  // A label may hold further bars.
  const [target = "", ...labels] = inside.split("|");
  const label = labels.length === 0 ? undefined : labels.join("|");
  if (target.startsWith("@")) return `@${name ?? label ?? target.slice(1)}`;
  if (target.startsWith("#"))
    return `#${label !== undefined && label !== "" ? label : (name ?? target.slice(1))}`;
  if (target.startsWith("!date^")) return label ?? "";
  if (target.startsWith("!subteam^")) return label ?? "@group";
  if (target.startsWith("!")) return `@${target.slice(1)}`;
  const address = target.replace(/^mailto:|^tel:/, "");
  // Slack links addresses by itself. Then the label is the address, and is dropped.
  if (label === undefined || label === address || address.replace(/^https?:\/\//, "") === label)
    return address;
  return `${label} (${address})`;
}

/** So many characters of markup are read of the blocks and attachments of one message. */
const maxRichChars = 6000;
/** Elements inside of elements are read so deep. Slack's own nesting is less. */
const maxDepth = 8;

/** This is all that a message says, in Slack's markup, with the files of forwarded messages. */
interface RichContent {
  readonly markup: string;
  readonly files: readonly SlackFileInfo[];
}

/** This is a JSON object of Slack's. All fields depend on its type, and Slack adds types. */
type Node = Readonly<Record<string, unknown>>;

/**
 * Reads a message's text, forwarded messages, previews of links, and the blocks and attachments of apps. What
 * is not the author's own words is a marked quote. More than 6,000 characters beside the text are cut, and
 * end with "(cut)".
 */
export function readRichContent(message: SlackMessageInfo): RichContent {
  const isApp = message.bot_id !== undefined || message.subtype === "bot_message";
  // What people type is in `text` too. Apps often have only a short notification there.
  const blocks = isApp ? textOfBlocks(message.blocks ?? []) : "";
  const text = message.text ?? "";
  // A table that somebody pastes is a block beside the text.
  const tables = isApp ? "" : textOfBlocks(toNodes(message.blocks).filter(({ type }) => type === "table"));
  const typed = [text, text.includes(tables) ? "" : cutText(tables, maxRichChars)].filter(
    (part) => part !== "",
  );
  const own = blocks === "" || text.includes(blocks) ? typed.join("\n\n") : blocks;
  const attachments = toNodes(message.attachments);
  const quotes: string[] = [];
  let room = maxRichChars;
  for (const attachment of attachments) {
    const said = toAttachmentText(attachment).trim();
    if (said === "" || room <= 0) continue;
    quotes.push(quote(labelOf(attachment), cutText(said, room)));
    room -= said.length;
  }
  return {
    markup: [isApp ? cutText(own, Math.max(text.length, maxRichChars)) : own, ...quotes]
      .filter((part) => part !== "")
      .join("\n\n"),
    files: attachments.flatMap((one) => toNodes(one["files"])) as unknown as readonly SlackFileInfo[],
  };
}

function quote(who: string, text: string): string {
  return `> ${who}:\n${text
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n")}`;
}

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function toNodes(value: unknown): readonly Node[] {
  return Array.isArray(value) ? value.filter((each) => isNode(each)) : [];
}

function field(node: Node, name: string): string {
  const value = node[name];
  return typeof value === "string" ? value : "";
}

function isForwarded(attachment: Node): boolean {
  return attachment["is_share"] === true || attachment["is_msg_unfurl"] === true;
}

function labelOf(attachment: Node): string {
  const author = escapeText(oneLine(field(attachment, "author_name") || field(attachment, "author_subname")));
  if (isForwarded(attachment)) return author === "" ? "Forwarded message" : `Forwarded message of ${author}`;
  const url = escapeText(oneLine(field(attachment, "from_url") || field(attachment, "original_url")));
  return url === "" ? "Attachment" : `Preview of ${url}`;
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function toAttachmentText(attachment: Node): string {
  const forwarded = toNodes(attachment["message_blocks"])
    .map((one) => (isNode(one["message"]) ? textOfBlocks(one["message"]["blocks"]) : ""))
    .filter((text) => text !== "");
  const blocks = textOfBlocks(attachment["blocks"]);
  const text = field(attachment, "text");
  if (isForwarded(attachment)) return text || forwarded.join("\n") || blocks || field(attachment, "fallback");
  const lines = [
    field(attachment, "pretext"),
    field(attachment, "title"),
    text,
    blocks,
    ...toNodes(attachment["fields"]).map((one) => `${field(one, "title")}: ${field(one, "value")}`),
    field(attachment, "footer"),
  ].filter((line) => line !== "");
  return lines.length === 0 ? field(attachment, "fallback") : lines.join("\n");
}

/** Returns the text of Block Kit blocks, with one line for each piece. */
function textOfBlocks(blocks: unknown): string {
  return toNodes(blocks)
    .map((block) => toBlockText(block).trim())
    .filter((text) => text !== "")
    .join("\n");
}

function toBlockText(block: Node): string {
  switch (block["type"]) {
    case "rich_text":
      return inlineText(block["elements"], "\n", 0);
    case "table":
      return toTableText(block["rows"]);
    case "context":
      return toNodes(block["elements"]).map(toElementText).join(" ");
    case "actions":
      return toNodes(block["elements"]).map(toElementText).join(" ");
    case "image":
    case "video":
      return pictureText(block);
    default:
      // Sections, headers, Markdown, and what Slack adds have these fields.
      return [
        toTextField(block["text"]),
        ...toNodes(block["fields"]).map(toTextField),
        isNode(block["accessory"]) ? toElementText(block["accessory"]) : "",
      ]
        .filter((text) => text !== "")
        .join("\n");
  }
}

/** Returns the text of a text object, or the text itself. Plain text is no markup, and is escaped. */
function toTextField(value: unknown): string {
  if (typeof value === "string") return value;
  if (!isNode(value)) return "";
  return value["type"] === "plain_text" ? escapeText(field(value, "text")) : field(value, "text");
}

function toElementText(element: Node): string {
  switch (element["type"]) {
    case "mrkdwn":
    case "plain_text":
      return toTextField(element);
    case "image":
      return pictureText(element);
    case "button":
    case "workflow_button":
      return `[button: ${toTextField(element["text"])}]`;
    default:
      return "";
  }
}

function pictureText(element: Node): string {
  const alt = escapeText(field(element, "alt_text")) || toTextField(element["title"]);
  return alt === "" ? "" : `[picture: ${alt}]`;
}

function toTableText(rows: unknown): string {
  if (!Array.isArray(rows)) return "";
  return rows
    .map((row) =>
      toNodes(row)
        .map((cell) =>
          cell["type"] === "rich_text" ? inlineText(cell["elements"], " ", 0) : toTextField(cell["text"]),
        )
        .join(" | "),
    )
    .join("\n");
}

/** Returns the text of rich text elements as markup, with mentions as `toPlainText` reads them. */
function inlineText(elements: unknown, separator: string, depth: number): string {
  if (depth > maxDepth) return "";
  return toNodes(elements)
    .map((element) => {
      switch (element["type"]) {
        case "rich_text_list":
          return listText(element, depth);
        case "rich_text_quote":
          return `> ${inlineText(element["elements"], "", depth + 1).replaceAll("\n", "\n> ")}`;
        case "rich_text_section":
          return inlineText(element["elements"], "", depth + 1);
        case "rich_text_preformatted":
          return `\`\`\`\n${inlineText(element["elements"], "", depth + 1)}\n\`\`\``;
        case "text":
          return isCode(element)
            ? `\`${escapeText(field(element, "text"))}\``
            : escapeText(field(element, "text"));
        case "date":
          return escapeText(field(element, "fallback")) || toDate(element["timestamp"]);
        case "link":
          return linkText(element);
        case "user":
          return `<@${field(element, "user_id")}>`;
        case "channel":
          return `<#${field(element, "channel_id")}>`;
        case "usergroup":
          return `<!subteam^${field(element, "usergroup_id")}>`;
        case "broadcast":
          return `@${field(element, "range")}`;
        case "emoji":
          return `:${field(element, "name")}:`;
        default:
          return "";
      }
    })
    .join(separator);
}

const isList = ({ type }: Node): boolean => type === "rich_text_list";

/**
 * Returns the text of a list. Slack writes nested lists as lists of their own, with an indent; other apps
 * also put them among the items of a list or into one.
 */
function listText(list: Node, depth: number, outer = 0): string {
  if (depth > maxDepth) return "";
  const indent = Math.min(Math.max(outer, toCount(list["indent"])), maxDepth);
  let number = toCount(list["offset"]);
  return toNodes(list["elements"])
    .flatMap((item) => {
      if (isList(item)) return [listText(item, depth + 1, indent + 1)];
      const elements = toNodes(item["elements"]);
      const mark = list["style"] === "ordered" ? `${++number}.` : "-";
      const own = inlineText(
        elements.filter((element) => !isList(element)),
        "",
        depth + 1,
      );
      const inner = elements.filter(isList).map((each) => listText(each, depth + 1, indent + 1));
      return [`${"    ".repeat(indent)}${mark} ${own}`, ...inner];
    })
    .join("\n");
}

function toCount(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function isCode({ style }: Node): boolean {
  return isNode(style) && style["code"] === true;
}

function toDate(seconds: unknown): string {
  const date = new Date(Number(seconds) * 1000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

function linkText(element: Node): string {
  const url = escapeText(field(element, "url"));
  const label = escapeText(field(element, "text"));
  return label === "" || label === url ? url : `${label} (${url})`;
}
