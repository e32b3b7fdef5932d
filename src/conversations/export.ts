import type { ConversationSettings, ExportedFile, MessagePart, StoredMessage } from "../core/storage.ts";
import { toCodeBlock } from "../support/markdown-fences.ts";
import type { BlobStore } from "./blobs.ts";
import type { KeyValueStore } from "./key-value.ts";
import { entryAt } from "./store-keys.ts";
import { createSlots } from "./slots.ts";

/**
 * A conversation as files: `conversation.md` to read, `conversation.json` with everything that is stored, and
 * every picture and voice note, which the Markdown links to.
 */
export async function exportConversation(
  store: KeyValueStore,
  blobs: BlobStore,
  conversationId: string,
): Promise<readonly ExportedFile[]> {
  const { space, key } = entryAt.settings(conversationId);
  const settings = (await store.get<ConversationSettings>(space, key)) ?? {};
  const messages: StoredMessage[] = [];
  const names = new Map<string, string>();
  const files: ExportedFile[] = [];
  for await (const { message, damage } of createSlots(store).all(conversationId)) {
    if (damage !== undefined) throw damage;
    if (message === undefined) continue;
    messages.push(message);
    for (const part of message.parts) {
      if (!("blob" in part) || names.has(part.blob.hash)) continue;
      const blob = await blobs.get(conversationId, part.blob.hash);
      if (blob === undefined) continue;
      const name = `${part.kind}-${part.blob.hash.slice(0, 12)}.${extensionOf(part.blob.mediaType)}`;
      names.set(part.blob.hash, name);
      files.push({ name, mediaType: blob.mediaType, bytes: blob.bytes });
    }
  }
  const whole = { conversationId, settings, messages, files: Object.fromEntries(names) };
  const text = (name: string, mediaType: string, content: string): ExportedFile => ({
    name,
    mediaType,
    bytes: Buffer.from(content),
  });
  return [
    text("conversation.md", "text/markdown", toMarkdown(settings.title ?? "Conversation", messages, names)),
    text("conversation.json", "application/json", `${JSON.stringify(whole, undefined, 2)}\n`),
    ...files,
  ];
}

function toMarkdown(
  title: string,
  messages: readonly StoredMessage[],
  names: ReadonlyMap<string, string>,
): string {
  const sections = messages.map((message) => {
    const who =
      message.role === "user" ? (message.author?.name ?? "Somebody") : (message.model ?? "Assistant");
    const when = new Date(message.createdAt).toISOString().replace("T", " ").slice(0, 16);
    const parts = message.parts.map((part) => toMarkdownPart(part, names));
    const notices = [...(message.notices ?? []), message.failure ?? []].flat();
    return [`## ${oneLine(who)}, ${when} UTC`, ...parts, ...notices.map((notice) => `> ${oneLine(notice)}`)]
      .filter((each) => each !== "")
      .join("\n\n");
  });
  return `${[`# ${oneLine(title)}`, ...sections].join("\n\n")}\n`;
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
      return `[${label(part.name)}](${names.get(part.blob.hash) ?? ""})\n\n${part.text}`;
    case "file":
      return `**${label(part.name)}**\n\n${toCodeBlock(part.text)}`;
    case "unread":
      return `*${label(part.name)} was not read: ${oneLine(part.reason)}*`;
  }
}

function label(text: string): string {
  return oneLine(text).replaceAll(/[[\]\\*_`]/g, String.raw`\$&`);
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

function extensionOf(mediaType: string): string {
  const subtype = mediaType.split(/[/;]/)[1]?.replace(/^x-/, "") ?? "";
  const known: Readonly<Record<string, string>> = { jpeg: "jpg", mpeg: "mp3", mp4: "m4a", plain: "txt" };
  if (Object.hasOwn(known, subtype)) return known[subtype] ?? "bin";
  return /^[a-z0-9]{1,5}$/.test(subtype) ? subtype : "bin";
}
