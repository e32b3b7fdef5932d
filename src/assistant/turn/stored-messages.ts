import type { FixedWords, PictureRef } from "../../core/events.ts";
import type { ReplyEnding, Reply, ReplyFile } from "../../core/reply.ts";
import { actionsOf } from "../../core/press.ts";
import type { RoomState } from "../../core/room.ts";
import {
  boundVersions,
  toVersions,
  type MessagePart,
  type StoredMessage,
  type Conversations,
  type StoredBlob,
} from "../../core/storage.ts";
import type { TurnDependencies, ReceiptDraft } from "./turn.ts";
import { toNotice, type NamedPicture } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { ChatMessage } from "../../core/gateway.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import { collectAnswer, type CollectedAnswer } from "./stream-answer.ts";

/** The estimated tokens of a picture, in the upper middle of what vision models charge. */
export const tokensPerImage = 1000;

const encoder = new TextEncoder();

/** A rough token count, `ceil(utf8 bytes / 4)`. Exact tokenizers are slow on hostile input. */
export function estimateTokens(text: string): number {
  return Math.ceil(encoder.encode(text).byteLength / 4);
}

/** A rough token count of a whole message. */
export function estimatePartsTokens(parts: readonly MessagePart[]): number {
  return parts.reduce((sum, part) => sum + estimatePartTokens(part), 0);
}

function estimatePartTokens(part: MessagePart): number {
  switch (part.kind) {
    case "text":
    case "voice":
    case "file":
      return estimateTokens(part.text) + 4;
    case "image":
      return tokensPerImage + estimateTokens(part.altText ?? "");
    case "image-link":
      return tokensPerImage;
    case "unread":
      return 16;
  }
}

/**
 * Keeps only the last attempt of each turn, at the position of the first. The log holds earlier attempts, and
 * a paused process may add its own after another has resumed the turn. An attempt that failed before its
 * question could be stored still comes after the question.
 */
export function withoutRetriedAttempts(messages: readonly StoredMessage[]): StoredMessage[] {
  const kept: (StoredMessage | undefined)[] = [];
  const indexOfTurn = new Map<string, number>();
  /** Turns with an attempt that was stored before its question. */
  const early = new Set<string>();
  const keepLast = (message: StoredMessage | undefined, turnKey: string): void => {
    indexOfTurn.set(turnKey, kept.length);
    kept.push(message);
  };
  for (const message of messages) {
    const { attempt, turnKey } = message;
    const index = indexOfTurn.get(turnKey);
    if (attempt === undefined) {
      kept.push(message);
      if (index === undefined || message.role !== "user") continue;
      early.add(turnKey);
      keepLast(kept[index], turnKey);
      kept[index] = undefined;
    } else if (index === undefined) keepLast(message, turnKey);
    else if (attempt > (kept[index]?.attempt ?? 0)) {
      if (early.delete(turnKey)) {
        kept[index] = undefined;
        keepLast(message, turnKey);
      } else kept[index] = message;
    }
  }
  return kept.filter((message) => message !== undefined);
}

/** The log as people see it: the last attempt of each turn, with the text of earlier ones as versions. */
export function toShownMessages(messages: readonly StoredMessage[]): StoredMessage[] {
  const attempts = Map.groupBy(
    messages.filter(({ attempt }) => attempt !== undefined),
    ({ turnKey }) => turnKey,
  );
  return withoutRetriedAttempts(messages).map((message) => {
    const earlier = (attempts.get(message.turnKey) ?? []).filter(
      ({ attempt = 0 }) => attempt < (message.attempt ?? 0),
    );
    if (earlier.length === 0) return message;
    const own = message.versions ?? [];
    const texts = [...earlier, ...own, message].map(({ parts }) => textOf(parts));
    // Text that a later attempt continued or kept is already part of that attempt.
    const others = earlier.filter(
      ({ parts }, index) => hasImage(parts) || !texts[index + 1]?.startsWith(texts[index] ?? ""),
    );
    const versions = boundVersions([...others.flatMap(toVersions), ...own]);
    return versions.length === 0 ? message : { ...message, versions };
  });
}

function hasImage(parts: readonly MessagePart[]): boolean {
  return parts.some(({ kind }) => kind === "image");
}

/** The plain text of a message, for titles and quotes. */
export function textOf(parts: readonly MessagePart[]): string {
  return parts
    .flatMap((part) => (part.kind === "text" || part.kind === "voice" ? [part.text] : []))
    .join("\n")
    .trim();
}

/** Whether people have shown pictures. Pictures that models drew are described in words anyway. */
export function hasPictures(history: readonly StoredMessage[]): boolean {
  return history.some(
    ({ role, parts }) =>
      role === "user" && parts.some(({ kind }) => kind === "image" || kind === "image-link"),
  );
}

/** What was said since `/reset`, or everything if the reset is older than these messages. */
export function afterReset(
  log: readonly StoredMessage[],
  resetAfter: string | undefined,
): readonly StoredMessage[] {
  return log.slice(log.findIndex((message) => message.id === resetAfter) + 1);
}

/** Marks a thread that people had before the bot came. It changes nothing for a known conversation. */
export async function markPeoplesThread(conversations: Conversations, conversationId: string): Promise<void> {
  const { room } = await conversations.settings(conversationId);
  // Conversations that were stored without the mark stay as they are.
  if (room !== undefined || (await conversations.existing([conversationId])).length > 0) return;
  await conversations.saveSettings(conversationId, { room: { isPeoples: true } });
}

/** Changes what is known of a room and keeps the rest. */
export async function changeRoomState(
  conversations: Pick<Conversations, "saveSettings">,
  conversationId: string,
  change: RoomState,
): Promise<void> {
  await conversations.saveSettings(conversationId, ({ room }) => ({ room: { ...room, ...change } }), "soon");
}

/** Returns what is shown below the text of a stored answer. */
export function toEnding(
  conversationId: string,
  stored: StoredMessage,
  notices: readonly string[],
): ReplyEnding {
  const { sources } = stored;
  const actions = actionsOf(conversationId, stored);
  return { notices, actions, ...(sources === undefined ? {} : { sources }) };
}

/** Longest words of one recording that fit into a form of every platform, in characters. */
export const maxFixableChars = 3000;

type VoicePart = Extract<MessagePart, { kind: "voice" }>;

interface NumberedVoice {
  readonly part: VoicePart;
  readonly position: number;
}

/** Whether a part is a recording whose words fit into a form. */
export function isFixable(part: MessagePart): part is VoicePart {
  return part.kind === "voice" && part.text.length <= maxFixableChars;
}

/** The recordings of a message in order. `position` counts those with the same name. */
export function voicesIn({ parts }: Pick<StoredMessage, "parts">): NumberedVoice[] {
  const voices = parts.filter((part) => part.kind === "voice");
  return voices.map((part, index) => ({
    part,
    position: voices.slice(0, index).filter(({ name }) => name === part.name).length,
  }));
}

/** The message with corrected words. It returns the same object if nothing changes. */
export function withFixedWords(message: StoredMessage, fixed: readonly FixedWords[] = []): StoredMessage {
  const voices = voicesIn(message);
  const parts = message.parts.map((part) => {
    if (part.kind !== "voice") return part;
    const at = voices.find((voice) => voice.part === part)?.position;
    const words = fixed.findLast(({ name, position }) => name === part.name && position === at);
    if (words === undefined || words.text === part.text) return part;
    // The times are those of the words that were heard.
    const { times: _times, ...rest } = part;
    return { ...rest, text: words.text };
  });
  if (parts.every((part, index) => part === message.parts[index])) return message;
  return { ...message, parts, estimatedTokens: estimatePartsTokens(parts) };
}

/** A part of a message that is a picture, stored or at an address. */
export type PicturePart = Extract<MessagePart, { kind: "image" | "image-link" }>;

/** A picture of a conversation, with its name for people. */
export interface TakenPicture {
  readonly part: PicturePart;
  readonly named: NamedPicture;
  /** The id of the message that has it. */
  readonly messageId: string;
}

export function picturePartsOf({ parts }: Pick<StoredMessage, "parts">): PicturePart[] {
  return parts.filter((part) => part.kind === "image" || part.kind === "image-link");
}

/** The `number`th picture of a message, from 1, or `undefined` if it has fewer. */
export function pictureOf(message: StoredMessage, number: number): TakenPicture | undefined {
  const pictures = picturePartsOf(message);
  const part = pictures[number - 1];
  if (part === undefined) return undefined;
  const prompt = part.kind === "image" ? (part.altText ?? part.name) : new URL(part.url).host;
  return {
    part,
    named: { number, of: pictures.length, prompt, at: message.createdAt },
    messageId: message.id,
  };
}

/**
 * A stored picture for a message of the conversation `into`, to which its bytes are copied if needed.
 * @throws ParleyError `attachment-gone` if it is no longer stored, `store-unavailable`
 */
export async function takePicture(
  conversations: Pick<Conversations, "find" | "getBlob" | "putBlob">,
  { conversationId, messageId, number }: PictureRef,
  into: string,
): Promise<TakenPicture> {
  const message = await conversations.find(conversationId, messageId);
  const taken = message === undefined ? undefined : pictureOf(message, number);
  if (taken === undefined) throw gone(translate("picture.any"));
  const { part } = taken;
  if (part.kind === "image-link") return taken;
  const blob = await conversations.getBlob(conversationId, part.blob.hash);
  if (blob === undefined) throw gone(part.name);
  if (conversationId === into) return taken;
  return {
    ...taken,
    part: { ...part, blob: await conversations.putBlob(into, blob.bytes, blob.mediaType) },
  };
}

/** Remembers the last message with a picture, because people may mean it after it has left the context. */
export async function noteLastPicture(
  conversations: Pick<Conversations, "saveSettings">,
  conversationId: string,
  { id, turnKey, parts }: Pick<StoredMessage, "id" | "turnKey" | "parts">,
): Promise<void> {
  // A lone command has a separate conversation without later messages.
  if (turnKey === conversationId || picturePartsOf({ parts }).length === 0) return;
  await conversations.saveSettings(conversationId, { lastPicture: id }, "soon");
}

function gone(name: string): ParleyError {
  return new ParleyError("attachment-gone", "a stored picture is missing", { detail: { name } });
}

/** A picture change for an image-capable chat model. */
interface ChangeRequest {
  readonly model: string;
  readonly prompt: string;
  readonly part: PicturePart;
  /** The conversation that has the picture's bytes. */
  readonly conversationId: string;
}

/**
 * Asks a model to change one picture, without the conversation.
 * @throws ParleyError `gateway-…`, or `attachment-gone` if the picture is no longer stored
 */
export async function requestChange(
  { gateway, conversations, chat }: TurnDependencies,
  { model, prompt, part, conversationId }: ChangeRequest,
  receipt: ReceiptDraft,
  signal: AbortSignal,
): Promise<CollectedAnswer> {
  const url = await urlOf(conversations, conversationId, part);
  const messages: ChatMessage[] = [
    {
      role: "user",
      content: [
        { kind: "text", text: prompt },
        { kind: "image", url },
      ],
    },
  ];
  receipt.asks("image", model);
  const { maxTokens, temperature } = chat;
  // The answer is not streamed, because nothing can be shown before the picture is complete.
  const events = gateway.chat({ model, messages, maxTokens, temperature, stream: false }, signal);
  const answer = await collectAnswer(events);
  receipt.answered(answer);
  return answer;
}

async function urlOf(
  conversations: Pick<TurnDependencies["conversations"], "getBlob">,
  conversationId: string,
  part: PicturePart,
): Promise<string> {
  if (part.kind === "image-link") return part.url;
  const blob = await conversations.getBlob(conversationId, part.blob.hash);
  if (blob === undefined) throw gone(part.name);
  return toDataUri(blob);
}

/** The bytes of a stored picture as an address. */
export function toDataUri({ mediaType, bytes }: StoredBlob): string {
  return `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}`;
}

type StoredPicture = Extract<MessagePart, { kind: "image" }>;

/** After these failures the turn runs again and then shows the pictures. */
const outages = ["stopping", "platform-unreachable", "store-unavailable"] as const;

export function picturesIn(parts: readonly MessagePart[]): StoredPicture[] {
  return parts.filter((part) => part.kind === "image");
}

/**
 * Shows all pictures of a stored answer in one message. They are stored first, so that the next run shows
 * what a crash left out, and nothing is drawn twice.
 * @returns why pictures are not shown, one sentence each
 * @throws ParleyError `stopping`, `platform-unreachable`, `store-unavailable`
 */
export async function showPictures(
  { conversations, log }: { readonly conversations: Pick<Conversations, "getBlob">; readonly log: Log },
  conversationId: string,
  parts: readonly MessagePart[],
  reply: Pick<Reply, "attach">,
): Promise<string[]> {
  const pictures = picturesIn(parts);
  if (pictures.length === 0) return [];
  const blobs = await Promise.all(
    pictures.map(({ blob }) => conversations.getBlob(conversationId, blob.hash)),
  );
  const files = pictures.flatMap(({ name, altText = "" }, index): ReplyFile[] => {
    const blob = blobs[index];
    return blob === undefined ? [] : [{ name, mediaType: blob.mediaType, bytes: blob.bytes, altText }];
  });
  const missing = pictures.length - files.length;
  const notices = missing === 0 ? [] : [translate("picture.missing", { count: missing })];
  try {
    await Promise.all(files.map((file) => reply.attach(file)));
    return notices;
  } catch (error) {
    if (!isParleyError(error) || outages.some((code) => isParleyError(error, code))) throw error;
    log.warn({ err: error }, "pictures not shown");
    return [...notices, translate("picture.not-shown", { why: toNotice(error) })];
  }
}
