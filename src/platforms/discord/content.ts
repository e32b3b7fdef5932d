import { ButtonStyle, ComponentType, MessageFlags } from "discord-api-types/v10";
import type {
  APIActionRowComponent,
  APIButtonComponentWithCustomId,
  APIComponentInMessageActionRow,
} from "discord.js";
import { actionLabel } from "../../core/action-words.ts";
import { isReplyActionKind, type ReplyAction, type ReplyActionKind } from "../../core/reply-actions.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import { closeFence } from "../../support/markdown-fences.ts";
import { toFormSelect } from "./form-modal.ts";
import { toDiscordMarkdown } from "./markdown.ts";
import { translate } from "../../words/translate.ts";

/** Discord's limit of a message's text, in characters. */
export const maxContentChars = 2000;
/** Reserved below a piece of an answer for status, notices and failure. */
const smallPrintChars = 300;
/** Longest piece of an answer in one message. */
export const maxPieceChars = maxContentChars - smallPrintChars;

/** Prefix of a Retry button's custom id; the key follows. At most 100 characters in all. */
export const retryPrefix = "retry:";
/** Prefix of a confirm button's custom id; the key follows. */
export const confirmPrefix = "confirm:";
/** Prefix of the custom id of a button below an answer; its kind, a colon and the key follow. */
const actionPrefix = "act:";
const maxCustomIdChars = 100;
const maxButtonsInRow = 5;

/** Length of a piece of Markdown as Discord counts it: after conversion, in characters. */
export function lengthOf(markdown: string): number {
  return toDiscordMarkdown(markdown).length;
}

/** Flags of a message that only one person sees. The library's type has single flags only. */
export const privateFlags: MessageFlags = MessageFlags.SuppressEmbeds | MessageFlags.Ephemeral;

/** The body of a message. It pings nobody and shows no link previews. */
export interface DiscordContent {
  readonly content: string;
  readonly allowed_mentions: { readonly parse: [] };
  readonly flags: MessageFlags;
  readonly components: APIActionRowComponent<APIComponentInMessageActionRow>[];
}

/**
 * The body of one message of a reply. `overflow`: notices that do not fit below its text, for a message of their own.
 */
export function toDiscordContent(
  content: MessageContent,
  extraNotices: readonly string[] = [],
): DiscordContent & { readonly overflow?: string } {
  const isOpen = content.state === "waiting" || content.state === "streaming";
  const text = toDiscordMarkdown(isOpen ? closeFence(content.text) : content.text);
  const small = smallPrint(content, extraNotices);
  const base = {
    allowed_mentions: { parse: [] as [] },
    flags: MessageFlags.SuppressEmbeds,
    components: [
      ...toRow([
        ...toButton(ButtonStyle.Secondary, translate("button.retry"), retryPrefix, content.retryKey),
        ...toButton(ButtonStyle.Danger, content.confirm?.label ?? "", confirmPrefix, content.confirm?.key),
        ...(content.actions ?? []).flatMap(({ kind, key }) =>
          toButton(ButtonStyle.Secondary, actionLabel(kind), toActionId(kind, ""), key),
        ),
      ]),
      ...toFormSelect(content.forms ?? []),
    ],
  };
  const whole = [text, small].filter((part) => part !== "").join("\n");
  // Buttons below pictures need no words.
  const isAlone = content.state === "finished" && base.components.length > 0;
  if (whole === "" && !isAlone)
    return { ...base, content: `-# ${isOpen ? workingWords() : translate("delivery.done")}` };
  if (whole.length <= maxContentChars) return { ...base, content: whole };
  return { ...base, content: text, overflow: small };
}

function workingWords(): string {
  return translate("delivery.status", { status: translate("delivery.working") });
}

/** A plain sentence as a message. */
export function toSentence(text: string): DiscordContent {
  const { content, allowed_mentions, flags, components } = toDiscordContent({ text, state: "finished" });
  return { content, allowed_mentions, flags, components };
}

/** A short text, Markdown, that only one person sees, as a response to an interaction. */
export function toPrivateSentence(text: string): DiscordContent {
  return { ...toSentence(text), flags: privateFlags };
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
  return lines.join("\n");
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

function toRow(buttons: readonly APIButtonComponentWithCustomId[]): DiscordContent["components"] {
  if (buttons.length === 0) return [];
  return [{ type: ComponentType.ActionRow, components: buttons.slice(0, maxButtonsInRow) }];
}

/** The custom id of an action's button, and of the form that it opens. */
export function toActionId(kind: ReplyActionKind, key: string): string {
  return `${actionPrefix}${kind}:${key}`;
}

/** The action of a custom id of {@link toDiscordContent}. `undefined`: it is none, or one of another version. */
export function parseAction(customId: string): ReplyAction | undefined {
  if (!customId.startsWith(actionPrefix)) return undefined;
  const [, kind = "", key = ""] = /^([a-z]+):(.+)$/.exec(customId.slice(actionPrefix.length)) ?? [];
  return isReplyActionKind(kind) ? { kind, key } : undefined;
}
