import { cutText } from "../../support/cut-text.ts";
import type { SlackFileInfo, SlackMessageInfo } from "./message-info.ts";

/** What is read of the blocks and attachments of one message, in characters of markup. */
const maxRichChars = 6000;
/** Elements inside of elements are read so deep. Slack's own nesting is less. */
const maxDepth = 8;

/** A message's words with everything else that it says, in Slack's markup, and the files of forwarded messages. */
export interface RichContent {
  readonly markup: string;
  readonly files: readonly SlackFileInfo[];
}

/** A JSON object of Slack's. All fields depend on its type, and Slack adds types. */
type Node = Readonly<Record<string, unknown>>;

/**
 * Reads a message's text, forwarded messages, previews of links, and the blocks and attachments of apps. What is not the
 * author's own words is a marked quote. More than 6,000 characters beside the text are cut, and end with "(cut)".
 */
export function readRichContent(message: SlackMessageInfo): RichContent {
  const isApp = message.bot_id !== undefined || message.subtype === "bot_message";
  // What people type is in `text` too. Apps often have only a short notification there.
  const blocks = isApp ? textOfBlocks(message.blocks ?? []) : "";
  const text = message.text ?? "";
  const own = blocks === "" || text.includes(blocks) ? text : blocks;
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
    markup: [cutText(own, Math.max(text.length, maxRichChars)), ...quotes]
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
  const author = escape(oneLine(field(attachment, "author_name") || field(attachment, "author_subname")));
  if (isForwarded(attachment)) return author === "" ? "Forwarded message" : `Forwarded message of ${author}`;
  const url = escape(oneLine(field(attachment, "from_url") || field(attachment, "original_url")));
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

/** The text of Block Kit blocks, one line for each piece. */
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
      // Sections, headers, Markdown, and what Slack adds.
      return [
        toTextField(block["text"]),
        ...toNodes(block["fields"]).map(toTextField),
        isNode(block["accessory"]) ? toElementText(block["accessory"]) : "",
      ]
        .filter((text) => text !== "")
        .join("\n");
  }
}

/** A text object, or the text itself. Plain text is no markup: it is escaped. */
function toTextField(value: unknown): string {
  if (typeof value === "string") return value;
  if (!isNode(value)) return "";
  return value["type"] === "plain_text" ? escape(field(value, "text")) : field(value, "text");
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
  const alt = escape(field(element, "alt_text")) || toTextField(element["title"]);
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

/** The text of rich text elements as markup, with mentions as `toPlainText` reads them. */
function inlineText(elements: unknown, separator: string, depth: number): string {
  if (depth > maxDepth) return "";
  return toNodes(elements)
    .map((element) => {
      switch (element["type"]) {
        case "rich_text_list":
          return toNodes(element["elements"])
            .map((item) => `- ${inlineText(item["elements"], "", depth + 1)}`)
            .join("\n");
        case "rich_text_quote":
          return `> ${inlineText(element["elements"], "", depth + 1)}`;
        case "rich_text_section":
        case "rich_text_preformatted":
          return inlineText(element["elements"], "", depth + 1);
        case "text":
          return escape(field(element, "text"));
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

function linkText(element: Node): string {
  const url = escape(field(element, "url"));
  const label = escape(field(element, "text"));
  return label === "" || label === url ? url : `${label} (${url})`;
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
