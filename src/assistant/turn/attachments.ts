import { hash as digest } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { type Attachment, isClaimedSound, maxFileBytes, maxRecordingBytes } from "../../core/events.ts";
import type { TranscriptionRequest } from "../../core/gateway.ts";
import type { Platform, Reply, DownloadOptions } from "../../core/platform.ts";
import type { ReceiptCall } from "../../core/receipt.ts";
import type { Conversations, MessagePart } from "../../core/storage.ts";
import { decodeText, sniff, type Sniffed } from "../../media/sniff.ts";
import {
  type DocumentProblem,
  type Omission,
  type DocumentFormat,
  readDocument,
} from "../../media/documents/read-document.ts";
import { toModelImage } from "../../media/image.ts";
import type { Release } from "../../support/fair-semaphore.ts";
import type { MessageKey } from "../../words/english.ts";
import { translate } from "../../words/translate.ts";
import { transcribe, transcribeRecording } from "./transcribe-recording.ts";
import { toTimes } from "./transcript.ts";
import type { TurnDependencies } from "./turn.ts";

type Transcription = Awaited<ReturnType<typeof transcribe>>;

/** The longest text file that is quoted to the model, in characters. */
const maxQuotedChars = 100_000;
/** How many attachments of a message are read, three at a time. */
const maxAttachments = 10;
/** The longest alt text that is kept, in characters. Platforms accept about as much. */
const maxAltTextChars = 2000;
const imageLimits = { maxEdgePx: 2048, maxBytes: 5_000_000 };

export interface AttachmentReader {
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  transcribe(request: Omit<TranscriptionRequest, "model">, signal: AbortSignal): Promise<Transcription>;
  /** Names and terms from the person that guide the recognition. */
  readonly hint?: string | undefined;
  readonly clock: Clock;
  readonly conversations: Pick<Conversations, "putBlob">;
  readonly conversationId: string;
  /** The person whose files they are. People take turns. */
  readonly personId: string;
  /** Resolves when so many bytes may be loaded. */
  admitBytes(bytes: number, signal: AbortSignal): Promise<Release>;
  /** Called with a few words before a slow step. */
  status(text: string, options?: { readonly isLong?: boolean }): void;
}

/** A message's files as parts. */
interface ReadAttachments {
  readonly parts: readonly MessagePart[];
  readonly notices: readonly string[];
  /** The calls of the transcriptions. */
  readonly calls: readonly ReceiptCall[];
}

/**
 * Reads a message's files and keeps their order. Images are scaled to what models accept, voice is
 * transcribed, and the text of documents is quoted. Anything else becomes an `unread` part with its reason.
 * @throws ParleyError `store-unavailable`, or `gateway-…` for a voice note that could not be transcribed
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
    reason: translate("file.too-many", { max: maxAttachments }),
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
  const { name } = attachment;
  const maxBytes = isClaimedSound(attachment) ? maxRecordingBytes : maxFileBytes;
  const { sizeBytes = maxBytes } = attachment;
  const release = await reader.admitBytes(Math.min(sizeBytes, maxBytes), signal);
  try {
    const bytes = await reader.download(attachment, { maxBytes, signal });
    const sniffed = sniff(bytes);
    switch (sniffed.kind) {
      case "image":
        return await readImage(attachment, bytes, reader);
      case "audio":
        return await readVoice(attachment, bytes, sniffed, reader, signal);
      case "text":
        return readText(name, bytes);
      case "empty":
        return unread(name, translate("file.empty"));
      case "document":
        return await readDocumentText(name, bytes, sniffed.extension as DocumentFormat, reader, signal);
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
    throw error;
  } finally {
    release();
  }
}

function toReason(error: unknown): string {
  return toNotice(error).replace(/[.。]$/, "");
}

function unread(name: string, reason: string): ReadAttachments {
  return { parts: [{ kind: "unread", name, reason }], notices: [], calls: [] };
}

async function readImage(
  { name, altText = "" }: Attachment,
  bytes: Uint8Array,
  reader: AttachmentReader,
): Promise<ReadAttachments> {
  const image = await toModelImage(bytes, imageLimits, reader.personId);
  const blob = await reader.conversations.putBlob(reader.conversationId, image.bytes, image.mediaType);
  return {
    parts: [
      {
        kind: "image",
        blob,
        name,
        ...(altText === "" ? {} : { altText: altText.slice(0, maxAltTextChars) }),
      },
    ],
    notices: image.notice === undefined ? [] : [`${name}: ${image.notice}`],
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
  // A larger file does not fit the store, which keeps a file as one value.
  const isKept = bytes.length <= maxFileBytes;
  const blob = isKept
    ? await reader.conversations.putBlob(reader.conversationId, bytes, sniffed.mediaType)
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
      transcribe: (request, ended) => reader.transcribe(request, ended),
      status: (words, options) => {
        reader.status(words, options);
      },
      hint: reader.hint,
      clock: reader.clock,
      key: reader.personId,
    },
    signal,
  );
  const times = toTimes(text, timed);
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
    calls: answers.map(toCall),
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

/** Gives the name the ending of the sniffed container, by which services choose their decoder. */
function withExtension(name: string, extension: string): string {
  const stem = name.replace(/\.[^.]*$/, "").replace(/[^\w.-]+/g, "_") || "audio";
  return `${stem.slice(0, 60)}.${extension}`;
}

async function readDocumentText(
  name: string,
  bytes: Uint8Array,
  format: DocumentFormat,
  reader: AttachmentReader,
  signal: AbortSignal,
): Promise<ReadAttachments> {
  reader.status(translate("status.reading", { name }));
  const read = await readDocument(bytes, format, reader.personId, signal);
  if ("problem" in read) return unread(name, documentProblem(read.problem));
  return {
    parts: [{ kind: "file", name, text: read.text }],
    notices: omissionNotices(name, read.omissions),
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

/** The source and the target of the files of a turn or command. */
interface AttachmentTarget {
  readonly platform: Pick<Platform, "download">;
  /** The key of the event whose files they are. What is heard in them is kept with it. */
  readonly eventKey?: string;
  /** The conversation that stores the files. */
  readonly conversationId: string;
  readonly reply: Pick<Reply, "status">;
  readonly signal: AbortSignal;
}

/** What a person wants from the transcription. */
interface TranscriptionChoice extends Pick<TranscriptionRequest, "language" | "hint"> {
  readonly model?: string | undefined;
}

/** Reads files of a turn or command. @throws as {@link readAttachments} does */
export function readFiles(
  dependencies: TurnDependencies,
  target: AttachmentTarget,
  files: readonly Attachment[],
  { model, hint, ...choice }: TranscriptionChoice = {},
): Promise<ReadAttachments> {
  return readAttachments(
    files,
    {
      download: (attachment, options) => target.platform.download(attachment, options),
      transcribe: (request, signal) => {
        const ask = () => transcribe(dependencies, { ...request, ...choice }, model, signal);
        return target.eventKey === undefined
          ? ask()
          : hearOnce(dependencies, target.eventKey, request.bytes, ask);
      },
      hint,
      clock: dependencies.clock,
      admitBytes: (bytes, signal) => dependencies.admitBytes(bytes, signal),
      conversations: dependencies.conversations,
      conversationId: target.conversationId,
      personId: dependencies.personId,
      status: (text, options) => {
        target.reply.status(text, options);
      },
    },
    target.signal,
  );
}

/**
 * Takes what an earlier run of the event's turn has heard in these bytes, and otherwise asks and keeps the
 * answer. So each part of a recording is paid for once, although a process may be killed after any of them.
 */
async function hearOnce(
  { inbox }: Pick<TurnDependencies, "inbox">,
  key: string,
  bytes: Uint8Array,
  ask: () => Promise<Transcription>,
): Promise<Transcription> {
  const hash = digest("sha256", bytes);
  const [entry] = await inbox.lookUp([key]);
  const known = entry?.heard?.find((part) => part.hash === hash);
  if (known?.answer !== undefined) return known.answer;
  if (known !== undefined) throw new ParleyError("gateway-empty-answer", "no words were heard earlier");
  try {
    const answer = await ask();
    await inbox.keepHeard(key, { hash, answer });
    return answer;
  } catch (error) {
    if (isParleyError(error, "gateway-empty-answer")) await inbox.keepHeard(key, { hash });
    throw error;
  }
}

/** How many of the cut sheets are named. */
const maxNamedSheets = 5;

/** Says why a document was not read and what to do: the second half of "Not read: report.pdf (…)". */
function documentProblem(problem: DocumentProblem): string {
  return translate(`document.${problem}`);
}

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

/** Says in one sentence each what was left out of a document. */
function omissionNotices(name: string, omissions: readonly Omission[]): string[] {
  return omissions.map((omission) => toSentence(name, omission));
}

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
            sheets: omission.sheets.slice(0, maxNamedSheets).join(", "),
          });
    case "characters":
      return translate("file.text-cut", { name, max: omission.read });
  }
}
