import { toNotice, type NamedPicture } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { PictureRef } from "../../core/events.ts";
import type { ChatMessage } from "../../core/gateway.ts";
import type { Reply, ReplyFile } from "../../core/platform.ts";
import type { Conversations, MessagePart, StoredBlob, StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import { collectAnswer, type CollectedAnswer } from "./stream-answer.ts";
import type { ReceiptDraft, TurnDependencies } from "./turn.ts";

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
