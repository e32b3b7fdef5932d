import {
  ButtonStyle,
  ComponentType,
  MessageFlags,
  type APIActionRowComponent,
  type APIComponentInMessageActionRow,
} from "discord.js";
import type { MessageContent } from "../delivery/edit-target.ts";
import { closeFence } from "../../support/markdown-fences.ts";
import { toDiscordMarkdown } from "./markdown.ts";

/** Discord's limit of a message's text, in characters. */
const maxContentChars = 2000;
/** Room kept below a piece of an answer for its small print. */
const smallPrintChars = 300;
/** Longest piece of an answer in one message. */
export const maxPieceChars = maxContentChars - smallPrintChars;

/** How the custom id of a Retry button starts; the rest is the key. At most 100 characters in all. */
export const retryPrefix = "retry:";
/** The same of a button that confirms. */
export const confirmPrefix = "confirm:";
const maxCustomIdChars = 100;

/** Length of a piece as Discord will count it. */
export function lengthOf(markdown: string): number {
  return toDiscordMarkdown(markdown).length;
}

/** Of a message that one person sees. The library's type knows single flags only. */
export const privateFlags: MessageFlags = MessageFlags.SuppressEmbeds | MessageFlags.Ephemeral;

/** A message as Discord takes it; it pings nobody and shows no previews. */
export interface DiscordContent {
  readonly content: string;
  readonly allowed_mentions: { readonly parse: [] };
  readonly flags: MessageFlags;
  readonly components: APIActionRowComponent<APIComponentInMessageActionRow>[];
}

/**
 * One message of a reply. `overflow` is small print that has no room below its text and needs a message of its
 * own, so that nothing is cut off.
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
      ...toButton(ButtonStyle.Secondary, "Retry", retryPrefix, content.retryKey),
      ...toButton(ButtonStyle.Danger, content.confirm?.label ?? "", confirmPrefix, content.confirm?.key),
    ],
  };
  const whole = [text, small].filter((part) => part !== "").join("\n");
  if (whole.length <= maxContentChars) return { ...base, content: whole === "" ? "-# …" : whole };
  return { ...base, content: text, overflow: small };
}

/** A plain sentence as a message. */
export function toSentence(text: string): DiscordContent {
  const { content, allowed_mentions, flags, components } = toDiscordContent({ text, state: "finished" });
  return { content, allowed_mentions, flags, components };
}

/** A plain sentence that only the person who acted sees; as an answer to an interaction. */
export function toPrivateSentence(text: string): DiscordContent {
  return { ...toSentence(text), flags: privateFlags };
}

/** The beginning of a text, never ending in half a character. */
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
  return text.replaceAll(/\s*\n\s*/g, " ");
}

function toButton(
  style: ButtonStyle.Secondary | ButtonStyle.Danger,
  label: string,
  prefix: string,
  key: string | undefined,
): DiscordContent["components"] {
  if (key === undefined || prefix.length + key.length > maxCustomIdChars) return [];
  return [
    {
      type: ComponentType.ActionRow,
      components: [
        {
          type: ComponentType.Button,
          style,
          label,
          custom_id: `${prefix}${key}`,
        },
      ],
    },
  ];
}
