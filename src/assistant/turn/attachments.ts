import { toModelImage } from "../../media/image.ts";
import { sniff, type Sniffed } from "../../media/sniff.ts";
import type { Release } from "../../support/fair-semaphore.ts";
import { isParleyError } from "../../core/errors.ts";
import { toNotice } from "../../core/error-messages.ts";
import type { Attachment } from "../../core/events.ts";
import type { Conversations, MessagePart } from "../../core/storage.ts";
import type { DownloadOptions } from "../../core/platform.ts";
import type { TranscriptionRequest } from "../../core/gateway.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type { Transcription } from "./transcribe.ts";

/** Largest upload that is read, in bytes: what transcription services commonly take. */
const maxAttachmentBytes = 25_000_000;
/** Longest text file that is quoted to the model, in characters. */
const maxQuotedChars = 100_000;
/** Most attachments of one message that are read, three at a time. */
const maxAttachments = 10;
const imageLimits = { maxEdgePx: 2048, maxBytes: 5_000_000 };

export interface AttachmentReader {
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  transcribe(request: Omit<TranscriptionRequest, "model">, signal: AbortSignal): Promise<Transcription>;
  readonly conversations: Pick<Conversations, "putBlob">;
  readonly conversationId: string;
  /** Resolves when so many bytes may be loaded. */
  admitBytes(bytes: number, signal: AbortSignal): Promise<Release>;
  /** Called with a few words before a slow step. */
  status(text: string): void;
}

/** A message's files as parts. */
export interface ReadAttachments {
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  /** The transcriptions made. */
  readonly calls: readonly ReceiptCall[];
}

/**
 * Reads a message's files: images are scaled to what models take, voice is transcribed, text is quoted, anything else
 * becomes an `unread` part with its reason. The order is kept.
 * @throws ParleyError `store-unavailable`, `gateway-…` (a voice note that could not be transcribed)
 */
export async function readAttachments(
  attachments: readonly Attachment[],
  reader: AttachmentReader,
  signal: AbortSignal,
): Promise<ReadAttachments> {
  const results: ReadAttachments[] = [];
  const queue = attachments.slice(0, maxAttachments).entries();
  const worker = async (): Promise<void> => {
    for (const [index, attachment] of queue) results[index] = await readOne(attachment, reader, signal);
  };
  await Promise.all([worker(), worker(), worker()]);
  const tooMany = attachments.slice(maxAttachments).map(({ name }): MessagePart => ({
    kind: "unread",
    name,
    reason: `only ${maxAttachments} files are read at once`,
  }));
  return {
    parts: [...results.flatMap((result) => result.parts), ...tooMany],
    notices: results.flatMap((result) => result.notices),
    calls: results.flatMap((result) => result.calls),
  };
}

async function readOne(
  attachment: Attachment,
  reader: AttachmentReader,
  signal: AbortSignal,
): Promise<ReadAttachments> {
  if (attachment.linkUrl !== undefined) {
    return { parts: [{ kind: "image-link", url: attachment.linkUrl }], notices: [], calls: [] };
  }
  const { name, sizeBytes = maxAttachmentBytes } = attachment;
  const release = await reader.admitBytes(Math.min(sizeBytes, maxAttachmentBytes), signal);
  try {
    const bytes = await reader.download(attachment, { maxBytes: maxAttachmentBytes, signal });
    const sniffed = sniff(bytes);
    switch (sniffed.kind) {
      case "image":
        return await readImage(name, bytes, reader);
      case "audio":
        return await readVoice(attachment, bytes, sniffed, reader, signal);
      case "text":
        return readText(name, bytes);
      case "empty":
        return unread(name, "the file is empty");
      case "other":
        return unread(
          name,
          `${sniffed.mediaType} is not something Parley reads; send pictures, audio or text`,
        );
    }
  } catch (error) {
    signal.throwIfAborted();
    if (isParleyError(error) && error.code.startsWith("attachment-")) return unread(name, toReason(error));
    if (isParleyError(error, "platform-forbidden")) return unread(name, toReason(error));
    if (isParleyError(error, "gateway-unsupported"))
      return unread(name, "no model of the gateway can transcribe");
    throw error;
  } finally {
    release();
  }
}

function toReason(error: unknown): string {
  return toNotice(error).replace(/\.$/, "");
}

function unread(name: string, reason: string): ReadAttachments {
  return { parts: [{ kind: "unread", name, reason }], notices: [], calls: [] };
}

async function readImage(
  name: string,
  bytes: Uint8Array,
  reader: AttachmentReader,
): Promise<ReadAttachments> {
  const image = await toModelImage(bytes, imageLimits);
  const blob = await reader.conversations.putBlob(reader.conversationId, image.bytes, image.mediaType);
  return {
    parts: [{ kind: "image", blob, name }],
    notices: image.notice === undefined ? [] : [`${name}: ${image.notice}.`],
    calls: [],
  };
}

async function readVoice(
  attachment: Attachment,
  bytes: Uint8Array,
  sniffed: Extract<Sniffed, { extension: string }>,
  reader: AttachmentReader,
  signal: AbortSignal,
): Promise<ReadAttachments> {
  const { name } = attachment;
  const blob = await reader.conversations.putBlob(reader.conversationId, bytes, sniffed.mediaType);
  reader.status(`Listening to ${name}`);
  const answer = await reader.transcribe(
    {
      bytes,
      fileName: withExtension(name, sniffed.extension),
      mediaType: sniffed.mediaType,
      ...(attachment.durationMs === undefined ? {} : { durationMs: attachment.durationMs }),
    },
    signal,
  );
  return {
    parts: [{ kind: "voice", blob, name, text: answer.text }],
    notices: answer.notices,
    calls: [toCall(answer)],
  };
}

function toCall({ asked, model, fallback, usage }: Transcription): ReceiptCall {
  return {
    operation: "transcription",
    asked,
    model,
    ...(fallback === undefined ? {} : { fallback }),
    usage,
  };
}

/** Services choose their decoder by the name's ending, so it must be the sniffed container's. */
function withExtension(name: string, extension: string): string {
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\w.-]+/g, "_") || "audio";
  return `${stem.slice(0, 60)}.${extension}`;
}

function readText(name: string, bytes: Uint8Array): ReadAttachments {
  const encoding =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe ? "utf-16be" : "utf-8";
  // A character takes at most four bytes: longer files are not decoded to their end.
  const isLong = bytes.length > maxQuotedChars * 4;
  const whole = new TextDecoder(encoding).decode(isLong ? bytes.subarray(0, maxQuotedChars * 4) : bytes);
  const isCut = isLong || whole.length > maxQuotedChars;
  const text = isCut ? whole.slice(0, maxQuotedChars) : whole;
  return {
    parts: [{ kind: "file", name, text }],
    notices: isCut ? [`Only the first ${maxQuotedChars} characters of ${name} were read.`] : [],
    calls: [],
  };
}
