import { ParleyError } from "../../core/errors.ts";
import type { PictureRef } from "../../core/events.ts";
import { translate } from "../../words/translate.ts";
import type { NamedPicture } from "../../core/picture-words.ts";
import type { Conversations, MessagePart, StoredMessage } from "../../core/storage.ts";

/** A part of a message that is a picture, stored or at an address. */
export type PicturePart = Extract<MessagePart, { kind: "image" | "image-link" }>;

/** A picture of a conversation, with its name for people. */
export interface TakenPicture {
  readonly part: PicturePart;
  readonly named: NamedPicture;
  /** Of the message that has it. */
  readonly messageId: string;
}

/** The pictures of a message, in order. */
export function picturePartsOf({ parts }: Pick<StoredMessage, "parts">): PicturePart[] {
  return parts.filter((part) => part.kind === "image" || part.kind === "image-link");
}

/** The `number`th picture of a message, from 1. `undefined`: it has fewer. */
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
 * A stored picture for a message of the conversation `into`, which gets its bytes where it is another one.
 * @throws ParleyError `attachment-gone`: it is no longer stored; `store-unavailable`
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

/** Remembers the last message with a picture: it can be meant when the context has it no more. */
export async function noteLastPicture(
  conversations: Pick<Conversations, "noteSettings">,
  conversationId: string,
  { id, turnKey, parts }: Pick<StoredMessage, "id" | "turnKey" | "parts">,
): Promise<void> {
  // A lone command has a conversation of its own, without a later message.
  if (turnKey === conversationId || picturePartsOf({ parts }).length === 0) return;
  await conversations.noteSettings(conversationId, { lastPicture: id });
}

function gone(name: string): ParleyError {
  return new ParleyError("attachment-gone", "a stored picture is missing", { detail: { name } });
}
