import { oneLine, toInlineCode } from "../../core/quoting.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError } from "../../core/errors.ts";
import { type Attachment, isClaimedSound, maxFileBytes, maxRecordingBytes } from "../../core/events.ts";
import type { TranscriptionRequest } from "../../core/gateway.ts";
import type { Platform } from "../../core/platform.ts";
import type { Reply } from "../../core/reply.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type { MessagePart } from "../../core/storage.ts";
import { decodeText, sniff, type Sniffed } from "../../media/sniff.ts";
import { type Omission, type DocumentFormat, readDocument } from "../../media/documents/read-document.ts";
import { toModelImage } from "../../media/image.ts";
import type { MessageKey } from "../../words/english.ts";
import { translate } from "../../words/translate.ts";
import { toReceiptCall, type TurnDependencies } from "./turn.ts";
import { transcribe, transcribeRecording } from "./transcribe-recording.ts";
import { toTimes } from "./transcript.ts";

/** The longest text file that is quoted to the model, in characters. */
const maxQuotedChars = 100_000;
/** How many attachments of a message are read. */
const maxAttachments = 10;
/** The longest alt text that is kept, in characters. Platforms accept about as much. */
const maxAltTextChars = 2000;
const imageLimits = { maxEdgePx: 2048, maxBytes: 5_000_000 };

/** The source and the target of the files of a turn or command. */
interface AttachmentTarget {
  readonly platform: Pick<Platform, "download">;
  /** Whether something is asked in words: then a recording that cannot be heard is only named. Default no. */
  readonly isAskedInWords?: boolean;
  /** The conversation that stores the files. */
  readonly conversationId: string;
  readonly reply: Pick<Reply, "status">;
  readonly signal: AbortSignal;
}

/** What a person wants from the transcription. */
interface TranscriptionChoice extends Pick<TranscriptionRequest, "language" | "hint"> {
  readonly model?: string | undefined;
}

/** What each file is read with. */
interface Reading extends AttachmentTarget {
  readonly dependencies: Pick<
    TurnDependencies,
    "admitBytes" | "clock" | "conversations" | "gateway" | "models" | "personId"
  >;
  readonly choice: TranscriptionChoice;
}

interface ReadAttachments {
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  /** The calls of the transcriptions. */
  readonly calls: readonly ReceiptCall[];
}

/**
 * Reads a message's files and keeps their order. Images are scaled to what models accept, voice is
 * transcribed, and the text of documents is quoted. Anything else becomes an `unread` part with its reason.
 * @throws ParleyError `store-unavailable`, or `gateway-…` for a voice note that could not be transcribed, if
 *   nothing is asked in words
 */
export async function readFiles(
  dependencies: Reading["dependencies"],
  target: AttachmentTarget,
  attachments: readonly Attachment[],
  choice: TranscriptionChoice = {},
): Promise<ReadAttachments> {
  const reading = { ...target, dependencies, choice };
  const results = await Promise.all(
    attachments.slice(0, maxAttachments).map((attachment) => readOne(attachment, reading)),
  );
  const tooMany = attachments.slice(maxAttachments).map(({ name }): MessagePart => ({
    kind: "unread",
    name,
    reason: translate("file.too-many", { max: maxAttachments }),
  }));
  return {
    parts: [...results.flatMap((result) => result.parts), ...tooMany],
    notices: results.flatMap((result) => result.notices),
    calls: results.flatMap((result) => result.calls),
  };
}

async function readOne(attachment: Attachment, reading: Reading): Promise<ReadAttachments> {
  const { dependencies, platform, signal } = reading;
  if (attachment.linkUrl !== undefined) {
    return { parts: [{ kind: "image-link", url: attachment.linkUrl }], notices: [], calls: [] };
  }
  const { name } = attachment;
  const maxBytes = isClaimedSound(attachment) ? maxRecordingBytes : maxFileBytes;
  const { sizeBytes = maxBytes } = attachment;
  const release = await dependencies.admitBytes(Math.min(sizeBytes, maxBytes), signal);
  try {
    const bytes = await platform.download(attachment, { maxBytes, signal });
    const sniffed = sniff(bytes);
    switch (sniffed.kind) {
      case "image":
        return await readImage(attachment, bytes, reading);
      case "audio":
        return await readVoice(attachment, bytes, sniffed, reading);
      case "text":
        return readText(name, bytes);
      case "empty":
        return unread(name, translate("file.empty"));
      case "document":
        return await readDocumentText(name, bytes, sniffed.extension as DocumentFormat, reading);
      case "other":
        return unread(name, unreadKind(sniffed.mediaType));
    }
  } catch (error) {
    signal.throwIfAborted();
    if (isParleyError(error) && error.code.startsWith("attachment-")) return unread(name, toReason(error));
    if (isParleyError(error, "platform-forbidden")) return unread(name, toReason(error));
    // Only a recording is sent to the gateway here, so nothing was said in it.
    if (isParleyError(error, "gateway-empty-answer")) return unread(name, translate("file.no-words"));
    if (isParleyError(error, "gateway-unsupported")) return unread(name, translate("file.no-transcription"));
    const isUnheard = isParleyError(error) && error.code.startsWith("gateway-");
    if (isUnheard && reading.isAskedInWords === true) return unread(name, toReason(error));
    throw error;
  } finally {
    release();
  }
}

/** Why a file was not read, for the end of a sentence. */
export function toReason(error: unknown): string {
  return toNotice(error).replace(/[.。]$/, "");
}

function unread(name: string, reason: string): ReadAttachments {
  return { parts: [{ kind: "unread", name, reason }], notices: [], calls: [] };
}

async function readImage(
  { name, altText = "" }: Attachment,
  bytes: Uint8Array,
  { dependencies, conversationId }: Reading,
): Promise<ReadAttachments> {
  const image = await toModelImage(bytes, imageLimits, dependencies.personId);
  const blob = await dependencies.conversations.putBlob(conversationId, image.bytes, image.mediaType);
  return {
    parts: [
      {
        kind: "image",
        blob,
        name,
        ...(altText === "" ? {} : { altText: altText.slice(0, maxAltTextChars) }),
      },
    ],
    notices: image.notice === undefined ? [] : [`${toInlineCode(name)}: ${image.notice}`],
    calls: [],
  };
}

async function readVoice(
  attachment: Attachment,
  bytes: Uint8Array,
  sniffed: Extract<Sniffed, { extension: string }>,
  reading: Reading,
): Promise<ReadAttachments> {
  const { name } = attachment;
  const { dependencies, conversationId, reply, signal } = reading;
  const { model, hint, ...wishes } = reading.choice;
  // A larger file does not fit the store, which keeps a file as one value.
  const isKept = bytes.length <= maxFileBytes;
  const blob = isKept
    ? await dependencies.conversations.putBlob(conversationId, bytes, sniffed.mediaType)
    : undefined;
  const { text, timed, notices, answers } = await transcribeRecording(
    {
      bytes,
      name,
      fileName: withExtension(name, sniffed.extension),
      mediaType: sniffed.mediaType,
      container: sniffed.container ?? "",
      durationMs: attachment.durationMs,
    },
    {
      transcribe: (request) => transcribe(dependencies, { ...request, ...wishes }, model, signal),
      status: (words, options) => {
        reply.status(words, options);
      },
      hint,
      clock: dependencies.clock,
      key: dependencies.personId,
    },
    signal,
  );
  const times = await toTimes(text, timed);
  const part: MessagePart = {
    kind: "voice",
    ...(blob === undefined ? {} : { blob }),
    name,
    text,
    ...(times.length === 0 ? {} : { times }),
  };
  const unkept = isKept ? [] : [translate("recording.not-kept", { name, max: maxFileBytes / 1_000_000 })];
  return {
    parts: [part],
    notices: [...notices, ...unkept],
    calls: answers.map((answer) => toReceiptCall("transcription", answer.asked, answer)),
  };
}

/** Gives the name the ending of the sniffed container, by which services choose their decoder. */
function withExtension(name: string, extension: string): string {
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\w.-]+/g, "_") || "audio";
  return `${stem.slice(0, 60)}.${extension}`;
}

async function readDocumentText(
  name: string,
  bytes: Uint8Array,
  format: DocumentFormat,
  { dependencies, reply, signal }: Reading,
): Promise<ReadAttachments> {
  reply.status(translate("status.reading", { name: oneLine(name) }));
  const read = await readDocument(bytes, format, dependencies.personId, signal);
  if ("problem" in read) return unread(name, translate(`document.${read.problem}`));
  return {
    parts: [{ kind: "file", name, text: read.text }],
    notices: read.omissions.map((omission) => toSentence(name, omission)),
    calls: [],
  };
}

function readText(name: string, bytes: Uint8Array): ReadAttachments {
  const { text, isCut } = decodeText(bytes, maxQuotedChars);
  return {
    parts: [{ kind: "file", name, text }],
    notices: isCut ? [translate("file.text-cut", { max: maxQuotedChars, name })] : [],
    calls: [],
  };
}

/** How many of the cut sheets are named. */
const maxNamedSheets = 5;

/** Known kinds that are not read, by sniffed media type. */
const unreadKinds = {
  "application/x-encrypted-office": "document.encrypted",
  "application/msword": "document.old-word",
  "application/vnd.ms-excel": "document.old-excel",
  "application/vnd.ms-powerpoint": "document.old-powerpoint",
} as const satisfies Readonly<Record<string, MessageKey>>;

/** Says why a file that is no picture, recording, text or document was not read. */
function unreadKind(mediaType: string): string {
  return Object.hasOwn(unreadKinds, mediaType)
    ? translate(unreadKinds[mediaType as keyof typeof unreadKinds])
    : translate("file.other-type", { type: mediaType });
}

/** Says in one sentence what was left out of a document. */
function toSentence(name: string, omission: Omission): string {
  switch (omission.kind) {
    case "pages":
    case "slides":
    case "sheets":
      return translate(`document.cut.${omission.kind}`, { name, read: omission.read, count: omission.count });
    case "blank-pages": {
      const { count, pages } = omission;
      if (count === 1) return translate("document.blank-page", { name, page: String(pages[0]) });
      const named = `${pages.join(", ")}${count > pages.length ? ", …" : ""}`;
      return translate("document.blank-pages", { name, count, pages: named });
    }
    case "pictures":
      return omission.count === undefined
        ? translate("document.pictures", { name })
        : translate("document.pictures.counted", { name, count: omission.count });
    case "rows":
      return omission.sheets.length === 0
        ? translate("document.rows", { name })
        : translate("document.rows.sheets", {
            name,
            sheets: omission.sheets.slice(0, maxNamedSheets).map(toInlineCode).join(", "),
          });
    case "characters":
      return translate("file.text-cut", { name, max: omission.read });
  }
}
