import { actionLabel } from "../../../core/error-messages.ts";
import {
  ButtonStyle,
  ComponentType,
  MessageFlags,
  type APIActionRowComponent,
  type APIButtonComponentWithCustomId,
  type APIComponentInMessageActionRow,
} from "discord.js";
import { Lexer, type Token, type Tokens } from "marked";
import { isReplyActionKind, type Press, type PressKind, type PressResult } from "../../../core/press.ts";
import type { ShownSource } from "../../../core/sources.ts";
import { isRating } from "../../../core/storage.ts";
import { closeFence } from "../../../support/markdown-fences.ts";
import { translate } from "../../../words/translate.ts";
import { planEnding, type MessageContent } from "../../delivery/message-plan.ts";
import { toFormSelect } from "../press/form-modal.ts";

/** Discord's limit of a message's text, in characters. */
export const maxContentChars = 2000;
/** Characters that are reserved below a piece of an answer for status, notices and failure. */
const smallPrintChars = 300;
/** The longest piece of an answer in one message. */
export const maxPieceChars = maxContentChars - smallPrintChars;

/** A Retry button's custom id begins with this, and the key follows. It has at most 100 characters in all. */
export const retryPrefix = "retry:";
/** A confirm button's custom id begins with this, and the key follows. */
export const confirmPrefix = "confirm:";
/** The custom id of a button below an answer begins with this. Its kind, a colon and the key follow. */
const actionPrefix = "act:";
/** The emoji of the two buttons that rate an answer. */
const thumbs = { good: "👍", bad: "👎" } as const;
const maxCustomIdChars = 100;
const maxButtonsInRow = 5;

/** Returns the length of a piece of Markdown as Discord counts it: after conversion, in characters. */
export function lengthOf(markdown: string): number {
  return toDiscordMarkdown(markdown).length;
}

/** The flags of a message that only one person sees. The library's type has single flags only. */
export const privateFlags: MessageFlags = MessageFlags.SuppressEmbeds | MessageFlags.Ephemeral;

/** The body of a message. It pings nobody and shows no link previews. */
export interface DiscordContent {
  readonly content: string;
  readonly allowed_mentions: { readonly parse: [] };
  readonly flags: MessageFlags;
  readonly components: APIActionRowComponent<APIComponentInMessageActionRow>[];
}

/** Returns the body of one message. Small print that has no room in it is cut. */
export function toDiscordContent(
  content: MessageContent,
  extraNotices: readonly string[] = [],
): DiscordContent {
  const isOpen = isGrowing(content);
  const base = {
    allowed_mentions: { parse: [] as [] },
    flags: MessageFlags.SuppressEmbeds,
    components: [
      ...toRows([
        ...toButton(ButtonStyle.Secondary, translate("button.retry"), retryPrefix, content.retryKey),
        ...toButton(ButtonStyle.Danger, content.confirm?.label ?? "", confirmPrefix, content.confirm?.key),
        ...(content.actions ?? []).flatMap(({ kind, key }) =>
          toButton(ButtonStyle.Secondary, actionLabel(kind), toActionId(kind, ""), key).map((button) =>
            isRating(kind) ? { ...button, emoji: { name: thumbs[kind] } } : button,
          ),
        ),
      ]),
      ...toFormSelect(content.forms ?? []),
    ],
  };
  const whole = toWhole(content, extraNotices);
  // Buttons below pictures need no words.
  const isAlone = content.state === "finished" && base.components.length > 0;
  if (whole === "" && !isAlone)
    return { ...base, content: `-# ${isOpen ? workingWords() : translate("delivery.done")}` };
  return { ...base, content: cut(whole, maxContentChars) };
}

function isGrowing({ state }: MessageContent): boolean {
  return state === "waiting" || state === "streaming";
}

/** Returns the text of a message with all that is below it. */
function toWhole(content: MessageContent, extraNotices: readonly string[] = []): string {
  return [
    toDiscordMarkdown(isGrowing(content) ? closeFence(content.text) : content.text),
    toSourceLines(content.sources ?? []),
    smallPrint(content, extraNotices),
  ]
    .filter((part) => part !== "")
    .join("\n");
}

/** Returns the length of a message's text with all that is below it, in characters. */
export function lengthOfAll(content: MessageContent): number {
  return toWhole(content).length;
}

/** The longest line of a source, in characters, so that a message holds several. */
const maxSourceLineChars = maxPieceChars - 60;

function toSourceLines(sources: readonly ShownSource[]): string {
  if (sources.length === 0) return "";
  return [`-# **${translate("sources.title")}**`, ...sources.map(toSourceLine)].join("\n");
}

/**
 * Links whose address is in angle brackets have no preview. One that is too long for a message is shown
 * without it.
 */
function toSourceLine({ number, url, label, host }: ShownSource): string {
  const words = escapeLabel(label);
  const end = host === undefined ? "" : ` (${escapeLabel(host)})`;
  const target = `<${toTarget(url)}>`;
  // Discord shows a link whose label holds an address with all its brackets.
  const line = `-# ${number}. ${addressInLabel.test(label) ? target : `[${words}](${target})`}${end}`;
  return line.length <= maxSourceLineChars ? line : `-# ${number}. ${words}${end}`;
}

/** Length of a source with its line break, and its part of the heading. */
export function lengthOfSource(source: ShownSource): number {
  return toSourceLine(source).length + (source.number === 1 ? maxPieceChars - maxSourceLineChars : 1);
}

/** Discord takes a bracket for the end of a label, whatever is before it; all other marks can be escaped. */
function escapeLabel(text: string): string {
  return text
    .replaceAll("[", "(")
    .replaceAll("]", ")")
    .replaceAll(/[!-/:-@\\^_`{-~]/g, String.raw`\$&`);
}

/** Percent-encodes the characters that would end a link or cannot be part of one. */
function toTarget(url: string): string {
  const { origin } = new URL(url);
  const rest = url.slice(origin.length);
  return (
    origin +
    rest.replaceAll(/[()[\]{}\\|`<>]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)
  );
}

function workingWords(): string {
  return translate("delivery.status", { status: translate("delivery.working") });
}

/** Makes a message of a plain sentence. */
export function toSentence(text: string): DiscordContent {
  const { content, allowed_mentions, flags, components } = toDiscordContent({ text, state: "finished" });
  return { content, allowed_mentions, flags, components };
}

/** Makes a reply to a message. Of all instances that post it with one nonce, Discord takes one. */
export function toReplyOnce(messageId: string, text: string, nonce = messageId) {
  return {
    ...toSentence(text),
    message_reference: { message_id: messageId, fail_if_not_exists: false },
    nonce,
    enforce_nonce: true,
  };
}

/** Makes a response to an interaction from a short Markdown text. Only one person sees it. */
export function toPrivateSentence(text: string): DiscordContent {
  return { ...toSentence(text), flags: privateFlags };
}

/** Makes the messages that tell one person something in private. */
export function toPrivateMessages({
  markdown,
  sources = [],
}: Extract<PressResult, { kind: "told" }>): readonly DiscordContent[] {
  const plan = planEnding(
    markdown,
    { state: "finished", sources },
    {
      maxLength: maxPieceChars,
      maxBareLength: maxContentChars,
      lengthOf,
      lengthOfSource,
      maxMessages: Infinity,
    },
  );
  return plan.contents.map((content) => ({ ...toDiscordContent(content), flags: privateFlags }));
}

/** The first `maxChars` characters of a text; surrogate pairs are not split. */
export function cut(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : text.slice(0, maxChars).replace(/[\uD800-\uDBFF]$/, "");
}

function smallPrint(content: MessageContent, extraNotices: readonly string[]): string {
  const lines: string[] = [];
  if (content.failure !== undefined) lines.push(`⚠️ ${content.failure}`);
  const { status } = content;
  if (status !== undefined && status !== "") lines.push(`-# ${oneLine(status)}`);
  for (const notice of [...(content.notices ?? []), ...extraNotices]) lines.push(`-# ${oneLine(notice)}`);
  return lines.map(fitLine).join("\n");
}

/** Cuts a line that would be longer than a message. */
function fitLine(line: string): string {
  return line.length <= maxPieceChars ? line : `${cut(line, maxPieceChars - 1)}…`;
}

function oneLine(text: string): string {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "").join(" ");
}

function toButton(
  style: ButtonStyle.Secondary | ButtonStyle.Danger,
  label: string,
  prefix: string,
  key: string | undefined,
): APIButtonComponentWithCustomId[] {
  if (key === undefined || prefix.length + key.length > maxCustomIdChars) return [];
  return [{ type: ComponentType.Button, style, label, custom_id: `${prefix}${key}` }];
}

/** Puts buttons into rows of five. Those without room in the first row stand in a second one. */
function toRows(buttons: readonly APIButtonComponentWithCustomId[]): DiscordContent["components"] {
  const starts = buttons.flatMap((_, index) => (index % maxButtonsInRow === 0 ? [index] : []));
  return starts.map((start) => ({
    type: ComponentType.ActionRow,
    components: buttons.slice(start, start + maxButtonsInRow),
  }));
}

/** Returns the custom id of an action's button, and of the form that it opens. */
export function toActionId(kind: PressKind, key: string): string {
  return `${actionPrefix}${kind}:${key}`;
}

/** Reads the press from a custom id of {@link toDiscordContent}. Returns `undefined` for others. */
export function parsePress(customId: string): Press | undefined {
  for (const [kind, prefix] of Object.entries({ retry: retryPrefix, confirm: confirmPrefix } as const))
    if (customId.startsWith(prefix))
      return { kind: kind as "retry" | "confirm", key: customId.slice(prefix.length) };
  if (!customId.startsWith(actionPrefix)) return undefined;
  const [, kind = "", key = ""] = /^([a-z]+):(.+)$/.exec(customId.slice(actionPrefix.length)) ?? [];
  return isReplyActionKind(kind) ? { kind, key } : undefined;
}

/** Wider tables stay as they are, since they would wrap in a code block. */
const maxTableColumns = 76;

/**
 * Converts standard Markdown to what Discord renders, whose Markdown differs. Only fences of exactly three
 * backticks are code blocks, `||` hides text, and `>>> ` quotes all that follows. Tables become aligned code
 * blocks, headings below level 3 bold lines, pictures links, and rules a line of dashes. People read the text
 * as it was sent.
 */
export function toDiscordMarkdown(markdown: string): string {
  if (!/[|#!\-_*`~>=\]]|^(?: {4}|\t)/m.test(markdown)) return markdown;
  // It may be code, where a backslash would be seen.
  if (isOverParser(markdown)) return markdown.replaceAll(/^([^\S\n]{0,9})-#(?=\s)/gm, "$1-\u200B#");
  return blocks(new Lexer({ gfm: true }).lex(markdown));
}

/** Longer texts are never one message. */
const maxChars = 8000;
/** The most bars and emphasis marks of an ordinary message. The parser's time for them is quadratic. */
const maxMarks = 400;
/** Matches many marks of quotes and lists at the beginning of a line. The parser nests as deep. */
const deeplyNested = /^(?:[ \t]{0,4}(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){20}/m;

/** Whether a text is made to keep the parser busy. Such a text is shown as it is. */
function isOverParser(markdown: string): boolean {
  if (markdown.length > maxChars || deeplyNested.test(markdown)) return true;
  let marks = 0;
  for (const _ of markdown.matchAll(/[*_~]+|\|/g)) if (++marks > maxMarks) return true;
  return false;
}

function blocks(tokens: readonly Token[]): string {
  return tokens.map((token) => block(token) + lineEndOf(token.raw)).join("");
}

/** Returns the line breaks and blanks at the end of a block, which its own conversion leaves out. */
function lineEndOf(raw: string): string {
  const end = raw.trimEnd().length;
  return raw.slice(Math.max(end, raw.indexOf("\n", end) === -1 ? raw.length : end)).replace(/^[^\n]+/, "");
}

function block(token: Token): string {
  switch (token.type) {
    case "space":
      return "";
    case "checkbox":
      return token.raw;
    case "code": {
      const { text, lang = "" } = token as Tokens.Code;
      return codeBlock(text, lang);
    }
    case "heading": {
      const { depth, tokens } = token as Tokens.Heading;
      const words = inline(tokens);
      return depth <= 3 ? `${"#".repeat(depth)} ${words}` : `**${words.replaceAll("**", "")}**`;
    }
    case "hr":
      return "──────────";
    case "table":
      return table(token as Tokens.Table);
    case "blockquote":
      return blocks((token as Tokens.Blockquote).tokens)
        .trimEnd()
        .split("\n")
        .map((line) => `> ${line}`)
        .join("\n");
    case "list":
      return (token as Tokens.List).items.map(listItem).join("").trimEnd();
    case "paragraph":
    case "text":
      return inline((token as Tokens.Paragraph).tokens ?? []).trimEnd();
    default:
      return escapeText(token.raw.trimEnd());
  }
}

/** Returns an item with its mark. The lines after its first are indented below its words. */
function listItem(item: Tokens.ListItem): string {
  const mark = /^ {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]{0,4}/.exec(item.raw)?.[0] ?? "- ";
  const width = mark.trimEnd().length + 1;
  const body = blocks(item.tokens).trimEnd();
  const lines = body.split("\n").map((line) => (line === "" ? "" : " ".repeat(width) + line));
  return `${mark.trimEnd()} ${lines.join("\n").slice(width)}${lineEndOf(item.raw) || "\n"}`;
}

/** Makes a code block. Discord has no longer fences, so zero-width characters separate backticks. */
function codeBlock(text: string, info: string): string {
  const language = /^[\w+.#-]{1,32}$/.exec(info.split(/\s/, 1)[0] ?? "")?.[0] ?? "";
  return `\`\`\`${language}\n${partTicks(text === "" ? " " : text)}\n\`\`\``;
}

function partTicks(text: string): string {
  return text.replaceAll(/`{2,}/g, (run) => run.split("").join("\u200B"));
}

function inline(tokens: readonly Token[]): string {
  return tokens.map(span).join("");
}

function span(token: Token): string {
  switch (token.type) {
    case "strong":
      return `**${inline((token as Tokens.Strong).tokens)}**`;
    case "em": {
      const mark = token.raw.charAt(0);
      return mark + inline((token as Tokens.Em).tokens) + mark;
    }
    case "del":
      return `~~${inline((token as Tokens.Del).tokens)}~~`;
    case "codespan": {
      const { text } = token as Tokens.Codespan;
      if (!text.includes("`")) return `\`${text}\``;
      return `\`\`${partTicks(text.startsWith("`") || text.endsWith("`") ? ` ${text} ` : text)}\`\``;
    }
    case "image":
      return picture(token as Tokens.Image);
    case "link": {
      const { href, raw, tokens } = token as Tokens.Link;
      if (!raw.startsWith("[")) return raw;
      const words = tokens.map(withoutPicture);
      return link(inline(words), wordsOf(words), href);
    }
    case "escape":
      return token.raw;
    default:
      return escapeText(token.raw);
  }
}

/** Matches an address in the label of a link, as Discord does. */
const addressInLabel = /https?:\/\/[^\s/]{2}/i;

/**
 * Makes a link. One whose label holds an address is shown by Discord with all its brackets, so that the label
 * is left out where it is an address, and elsewhere the address that it holds already.
 */
function link(label: string, words: string, href: string): string {
  if (!addressInLabel.test(words)) return `[${label}](${href})`;
  if (!/\s/.test(words.trim())) return href;
  return words.includes(href) ? label : `${label} (<${href}>)`;
}

/** Replaces a picture in a link by its words, since Discord has no link within a link. */
function withoutPicture(token: Token): Token {
  if (token.type !== "image") return token;
  const text = (token as Tokens.Image).text;
  return { type: "text", raw: text, text };
}

function picture({ href, text, raw }: Tokens.Image): string {
  if (!/^https?:/i.test(href)) return escapeText(raw);
  return text === "" ? `<${href}>` : link(escapeText(text), text, href);
}

/** Escapes what only Discord gives a meaning: hidden text, and lines of small print. */
function escapeText(text: string): string {
  return text.replaceAll("||", String.raw`\|\|`).replaceAll(/^([^\S\n]{0,9})-#(?=\s)/gm, String.raw`$1\-#`);
}

/** Draws a table. Lines without a bar that follow it are text, since models leave out the blank line. */
function table(token: Tokens.Table): string {
  const lines = token.raw.trimEnd().split("\n");
  const end = lines.findIndex((line) => !line.includes("|"));
  const count = end === -1 ? token.rows.length : Math.max(0, end - 2);
  const drawn = drawTable({ ...token, rows: token.rows.slice(0, count) });
  const rest = end === -1 ? [] : [blocks(new Lexer({ gfm: true }).lex(lines.slice(end).join("\n")))];
  return [drawn ?? escapeText(lines.slice(0, count + 2).join("\n")), ...rest].join("\n");
}

function drawTable({ header, rows, align }: Tokens.Table): string | undefined {
  const lines = [header, ...rows].map((cells) => cells.map(({ tokens }) => partTicks(wordsOf(tokens))));
  const columns = header.map((_cell, column) =>
    Math.max(...lines.map((cells) => widthOf(cells[column] ?? "")), 3),
  );
  if (columns.reduce((sum, width) => sum + width + 2, -2) > maxTableColumns) return undefined;
  const draw = (cells: readonly string[]): string =>
    columns
      .map((width, column) => aligned(cells[column] ?? "", width, align[column] ?? "left"))
      .join("  ")
      .trimEnd();
  const [head = [], ...body] = lines;
  const rule = columns.map((width) => "-".repeat(width)).join("  ");
  return ["```", draw(head), rule, ...body.map(draw), "```"].join("\n");
}

function aligned(text: string, width: number, align: "left" | "center" | "right"): string {
  const free = Math.max(0, width - widthOf(text));
  const before = align === "left" ? 0 : align === "right" ? free : Math.floor(free / 2);
  return " ".repeat(before) + text + " ".repeat(free - before);
}

/** Returns the text of a cell without its marks. */
function wordsOf(tokens: readonly Token[]): string {
  return tokens
    .map((token) => {
      if ("tokens" in token && token.tokens !== undefined) return wordsOf(token.tokens);
      return "text" in token && typeof token.text === "string" ? token.text : token.raw;
    })
    .join("");
}

/** Made on first use, because it takes time to load. */
let graphemes: Intl.Segmenter | undefined;

/** Returns the columns of a text in a fixed-width font. East Asian wide characters and emoji take two. */
function widthOf(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  // The text is wider than any table, whatever its letters are.
  if (text.length > maxTableColumns * 20) return text.length;
  let width = 0;
  graphemes ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  for (const { segment } of graphemes.segment(text)) {
    width +=
      /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}/u.test(
        segment,
      )
        ? 2
        : 1;
  }
  return width;
}
