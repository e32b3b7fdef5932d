import type {
  ConversationExport,
  ExportedFile,
  BlobRef,
  ConversationSettings,
  RollingSummary,
  MessagePart,
  StoredMessage,
} from "../core/storage.ts";
import { toShownSources } from "../core/sources.ts";
import { oneLine, toFenced, toQuotedLines } from "../core/quoting.ts";
import { toBytePieces, toJsonPieces } from "../support/text-pieces.ts";
import type { BlobStore } from "./blobs.ts";
import { toConversationTitle } from "./conversation-index.ts";
import { type KeyValueStore } from "./key-value.ts";
import { createSlots } from "./slots.ts";
import { entryAt } from "./keys.ts";

/**
 * Exports a conversation as files: `conversation.md` for reading, `conversation.json` with everything that is
 * stored, including earlier versions of answers, and every picture and voice note, to which the Markdown
 * links. Each file is read as it is consumed, so a long conversation is never in memory as a whole.
 * @throws ParleyError `store-corrupt` if a message is damaged
 */
export async function exportConversation(
  store: KeyValueStore,
  blobs: BlobStore,
  conversationId: string,
): Promise<ConversationExport> {
  const { space, key } = entryAt.settings(conversationId);
  const settings = (await store.get<ConversationSettings>(space, key)) ?? {};
  const at = entryAt.summary(conversationId);
  const kept = await store.get<RollingSummary>(at.space, at.key);
  const summary = kept?.text === "" ? undefined : kept;
  const names = new Map<string, string>();
  const stored: ExportedFile[] = [];
  let first: StoredMessage | undefined;

  async function* messages(): AsyncGenerator<StoredMessage> {
    for await (const { message, damage } of createSlots(store).all(conversationId)) {
      if (damage !== undefined) throw damage;
      if (message !== undefined) yield message;
    }
  }

  async function* readBlob({ hash }: BlobRef): AsyncGenerator<Uint8Array> {
    const blob = await blobs.get(conversationId, hash);
    if (blob !== undefined) yield blob.bytes;
  }

  for await (const message of messages()) {
    first ??= message;
    for (const part of [message, ...(message.versions ?? [])].flatMap(({ parts }) => parts)) {
      if (!("blob" in part) || part.blob === undefined || names.has(part.blob.hash)) continue;
      const { blob } = part;
      const name = `${part.kind}-${blob.hash.slice(0, 12)}.${extensionOf(blob.mediaType)}`;
      names.set(blob.hash, name);
      stored.push({ name, mediaType: blob.mediaType, read: () => readBlob(blob) });
    }
  }
  const title = settings.name ?? settings.title ?? toConversationTitle(first);
  const whole = {
    conversationId,
    settings,
    ...(summary === undefined ? {} : { summary }),
    files: Object.fromEntries(names),
  };
  const text = (name: string, mediaType: string, pieces: () => AsyncIterable<string>): ExportedFile => ({
    name,
    mediaType,
    read: () => toBytePieces(pieces()),
  });
  return {
    title,
    files: [
      text("conversation.md", "text/markdown", () => toMarkdown({ title, summary, names }, messages())),
      text("conversation.json", "application/json", () => toJson(whole, messages())),
      ...stored,
    ],
  };
}

/** Writes an object whose last field is the list of messages. */
async function* toJson(
  whole: Readonly<Record<string, unknown>>,
  messages: AsyncIterable<StoredMessage>,
): AsyncGenerator<string> {
  yield `${JSON.stringify(whole, undefined, 2).replace(/\n\}$/, "")},\n  "messages": [`;
  let isFirst = true;
  for await (const message of messages) {
    yield `${isFirst ? "" : ","}\n    `;
    yield* toJsonPieces(message, levelsOfMessage, "    ");
    isFirst = false;
  }
  yield `${isFirst ? "" : "\n  "}]\n}\n`;
}

/** A message, its lists, and each part or version in them, which is a piece. */
const levelsOfMessage = 2;

async function* toMarkdown(
  {
    title,
    summary,
    names,
  }: {
    readonly title: string;
    readonly summary: RollingSummary | undefined;
    readonly names: ReadonlyMap<string, string>;
  },
  messages: AsyncIterable<StoredMessage>,
): AsyncGenerator<string> {
  yield `# ${oneLine(title)}\n`;
  if (summary !== undefined)
    yield `\n## Summary of the first ${summary.messages} messages, for the model\n\n${toFenced(summary.text)}\n`;
  for await (const message of messages) {
    yield "\n";
    yield* toSection(message, names);
    yield "\n";
  }
}

/** Writes a message, with each of its parts as a piece. */
function* toSection(message: StoredMessage, names: ReadonlyMap<string, string>): Generator<string> {
  const who = message.role === "user" ? (message.author?.name ?? "Somebody") : (message.model ?? "Assistant");
  const context = message.room === undefined ? "" : " (context)";
  const when = new Date(message.createdAt).toISOString().replace("T", " ").slice(0, 16);
  yield `## ${oneLine(who)}${context}, ${when} UTC`;
  let before = "\n\n";
  for (const part of message.parts) {
    const text = toMarkdownPart(part, names);
    if (text === "") continue;
    yield `${before}${toQuote(text)}`;
    before = "\n>\n";
  }
  for (const list of toSourceList(message)) yield `\n\n${list}`;
  const notices = [...(message.notices ?? []), message.failure ?? []].flat();
  if (notices.length > 0)
    yield `\n\n${notices.map((notice) => `- ${withoutQuoteEnds(oneLine(notice))}`).join("\n")}`;
}

/** What was said, in a quotation that no text can end: a section of another's cannot be written in it. */
function toQuote(markdown: string): string {
  return withoutQuoteEnds(toQuotedLines(markdown).replaceAll(/^> $/gm, ">"));
}

/** HTML has an effect in Markdown. */
const withoutQuoteEnds = (text: string): string => text.replaceAll(/<\/(?=blockquote)/gi, "&lt;/");

function toSourceList({ sources }: StoredMessage): string[] {
  const lines = toShownSources(sources).map(
    ({ number, url, label: words, host }) =>
      `${number}. [${label(words)}](<${url}>)${host === undefined ? "" : ` (${label(host)})`}`,
  );
  return lines.length === 0 ? [] : [["Sources:", ...lines].join("\n")];
}

function toMarkdownPart(part: MessagePart, names: ReadonlyMap<string, string>): string {
  switch (part.kind) {
    case "text":
      return part.text;
    case "image":
      return `![${label(part.altText ?? part.name)}](${names.get(part.blob.hash) ?? ""})`;
    case "image-link":
      return `![](<${part.url.replaceAll(/[<>\s]/g, encodeURIComponent)}>)`;
    case "voice":
      return part.blob === undefined
        ? `${label(part.name)}\n\n${part.text}`
        : `[${label(part.name)}](${names.get(part.blob.hash) ?? ""})\n\n${part.text}`;
    case "file":
      return `**${label(part.name)}**\n\n${toFenced(part.text)}`;
    case "unread":
      return `*${label(part.name)} was not read: ${oneLine(part.reason)}*`;
  }
}

function label(text: string): string {
  return oneLine(text).replaceAll(/[[\]\\*_`]/g, String.raw`\$&`);
}

function extensionOf(mediaType: string): string {
  const subtype = mediaType.split(/[/;]/)[1]?.replace(/^x-/, "") ?? "";
  const known: Readonly<Record<string, string>> = { jpeg: "jpg", mpeg: "mp3", mp4: "m4a", plain: "txt" };
  if (Object.hasOwn(known, subtype)) return known[subtype] ?? "bin";
  return /^[a-z0-9]{1,5}$/.test(subtype) ? subtype : "bin";
}
