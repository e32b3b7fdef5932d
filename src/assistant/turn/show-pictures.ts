import { picturesMissingNotice, picturesNotShownNotice } from "../../core/picture-words.ts";
import { isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Reply, ReplyFile } from "../../core/platform.ts";
import type { Conversations, MessagePart } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";

/** A picture in a stored message. */
export type StoredPicture = Extract<MessagePart, { kind: "image" }>;

/** Failures after which the turn runs again: it shows the pictures then. */
const outages = ["stopping", "platform-unreachable", "store-unavailable"] as const;

/** The pictures among the parts of a message, in order. */
export function picturesIn(parts: readonly MessagePart[]): StoredPicture[] {
  return parts.filter((part) => part.kind === "image");
}

/**
 * Shows all pictures of a stored answer together, so that they are one message. They are stored first: what a crash
 * leaves unshown is shown by the next run, and nothing is drawn twice.
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
  const notices = missing === 0 ? [] : [picturesMissingNotice(missing)];
  try {
    await Promise.all(files.map((file) => reply.attach(file)));
    return notices;
  } catch (error) {
    if (!isParleyError(error) || outages.some((code) => isParleyError(error, code))) throw error;
    log.warn({ err: error }, "pictures not shown");
    return [...notices, picturesNotShownNotice(toNotice(error))];
  }
}
