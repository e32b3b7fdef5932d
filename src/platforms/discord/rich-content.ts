import { ComponentType } from "discord-api-types/v10";
import type { APIEmbed, APIMessage, APIPoll } from "discord.js";
import { cutText } from "../../support/cut-text.ts";

/** What is read of the embeds, components and poll of one message, in characters. */
const maxRichChars = 6000;
/** Components inside of components are read so deep. Discord itself allows three levels. */
const maxDepth = 5;

/** The fields of a message that hold content beside its text and files. */
export type RichMessage = Partial<
  Pick<APIMessage, "content" | "embeds" | "components" | "poll" | "sticker_items">
>;

/** A piece of a message, with the words that say what it is. */
export interface RichPart {
  readonly label: string;
  readonly text: string;
}

/**
 * The embeds, stickers, poll and components of a message as plain text, at most 6,000 characters in all: what is longer
 * ends with "(cut)".
 * @param options `hasButtons`: whether the labels of buttons and selects are content
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

/** Mostly the preview of a link in `content`, or the message of another app. */
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

/** A component as it may arrive: Discord adds types, and all fields depend on the type. */
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
