import { createHash } from "node:crypto";
import type { RawFile } from "discord.js";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Attachment, Json } from "../../../core/events.ts";
import type { DownloadOptions } from "../../../core/platform.ts";
import type { ReplyFile } from "../../../core/reply.ts";
import { createDownloader, type Downloader } from "../../../media/guarded-download.ts";
import { isOutage } from "../../delivery/receive-patiently.ts";
import type { DiscordApi } from "../transport/api.ts";
import { cut, type DiscordContent } from "../reply/content.ts";
import type { AttachmentSource } from "./incoming.ts";

const maxFiles = 10;
/** Discord's limit of a request is 25 MiB, multipart overhead included. */
const maxRequestBytes = 24 * 1024 * 1024;
const maxAltTextChars = 1024;

/** A file for upload with its alternative text. */
type UploadedFile = RawFile & { readonly altText: string };

/**
 * Distributes files over as many messages as Discord's limits require. Pictures above `maxBytes` are scaled
 * down.
 * @throws ParleyError `attachment-too-large` for other files above `maxBytes`
 */
export async function fitFiles(files: readonly ReplyFile[], maxBytes: number): Promise<UploadedFile[][]> {
  const batches: UploadedFile[][] = [];
  let batchBytes = 0;
  for (const file of files) {
    const fitted = await fitFile(file, maxBytes);
    const { length } = fitted.data as Uint8Array;
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === maxFiles || batchBytes + length > maxRequestBytes) {
      batches.push([fitted]);
      batchBytes = length;
    } else {
      batch.push(fitted);
      batchBytes += length;
    }
  }
  return batches;
}

async function fitFile(file: ReplyFile, maxBytes: number): Promise<UploadedFile> {
  const altText = cut(file.altText, maxAltTextChars);
  const asIs = { name: file.name, data: file.bytes, contentType: file.mediaType, altText };
  if (file.bytes.length <= maxBytes) return asIs;
  if (!file.mediaType.startsWith("image/")) {
    throw new ParleyError("attachment-too-large", "file exceeds Discord's upload limit", {
      detail: { name: file.name, maxBytes },
    });
  }
  const { toModelImage } = await import("../../../media/image.ts");
  const smaller = await toModelImage(file.bytes, { maxEdgePx: 4096, maxBytes }, "answers");
  const extension = smaller.mediaType.slice("image/".length).replace("jpeg", "jpg");
  const name = `${file.name.replace(/\.[^.]*$/, "")}.${extension}`;
  return { name, data: smaller.bytes, contentType: smaller.mediaType, altText };
}

/** Adds the alternative texts of a message's files to its content, where Discord expects them. */
export function withAltTexts<T extends DiscordContent>(content: T, files: readonly RawFile[]): T {
  if (files.length === 0) return content;
  const attachments = files.map((file, index) => ({
    id: String(index),
    filename: file.name,
    description: (file as { altText?: string }).altText ?? "",
  }));
  return { ...content, attachments };
}

/** Uploads files in messages. A repeated upload posts only what was not posted before. */
interface Uploads {
  /**
   * Calls `post` for each message that the files need, one after another. The nonce stays the same when the
   * call is repeated for the same array. Resolves to the references of all messages.
   * @throws what `post` throws; the next call goes on with that message
   */
  run(
    files: readonly ReplyFile[],
    maxFileBytes: number,
    post: (batch: RawFile[], nonce: string) => Promise<Json>,
  ): Promise<readonly Json[]>;
}

interface Batch {
  readonly files: RawFile[];
  readonly nonce: string;
}

/**
 * Creates the {@link Uploads} of one reply.
 * @param eventId the event that is answered; a process that resumes the reply uses the same nonces
 */
export function createUploads(eventId: string | undefined): Uploads {
  /** Holds what is left to post of each array, and what was posted. */
  const pending = new WeakMap<readonly ReplyFile[], { readonly left: Batch[]; readonly refs: Json[] }>();

  function nonceOf(batch: readonly RawFile[]): string {
    if (eventId === undefined) return randomNonce();
    const hash = createHash("sha256");
    for (const { data } of batch) hash.update(data as Uint8Array);
    // An event's id has up to 20 characters, and a nonce up to 25.
    return `${eventId}.${hash.digest("hex").slice(0, 4)}`;
  }

  return {
    async run(files, maxFileBytes, post) {
      let uploading = pending.get(files);
      if (uploading === undefined) {
        const fitted = await fitFiles(files, maxFileBytes);
        uploading = { left: fitted.map((batch) => ({ files: batch, nonce: nonceOf(batch) })), refs: [] };
        pending.set(files, uploading);
      }
      const { left, refs } = uploading;
      for (let batch = left[0]; batch !== undefined; batch = left[0]) {
        refs.push(await post(batch.files, batch.nonce));
        left.shift();
      }
      return refs;
    },
  };
}

/** Returns a nonce for a message that no other process posts. */
export function randomNonce(): string {
  return crypto.randomUUID().replaceAll("-", "").slice(0, 25);
}

const timeoutMs = 60_000;

/** Downloads attachments, only from Discord's hosts and the configured API's host. */
interface AttachmentDownload {
  /** @throws ParleyError as {@link Platform.download} */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  close(): Promise<void>;
}

export function createAttachmentDownload(api: DiscordApi, apiUrl: string): AttachmentDownload {
  const { host, protocol } = new URL(apiUrl);
  const downloader: Downloader = createDownloader({
    trusted: [
      { host: "cdn.discordapp.com" },
      { host: "media.discordapp.net" },
      { host, allowHttp: protocol === "http:" },
    ],
    allowPublicHttps: false,
  });

  /** Finds a valid URL. URLs expire after about a day, and the message, fetched again, has a new one. */
  async function freshUrl(source: AttachmentSource, id: string): Promise<string | undefined> {
    if (source.channelId === undefined || source.messageId === undefined) return undefined;
    const message = await api.getMessage(source.channelId, source.messageId);
    const forwarded = (message.message_snapshots ?? []).flatMap((one) => one.message.attachments ?? []);
    return [...message.attachments, ...forwarded].find((one) => one.id === id)?.url;
  }

  return {
    async download(attachment, { maxBytes, signal }) {
      const source = attachment.source as unknown as AttachmentSource;
      const limits = { maxBytes, timeoutMs, signal };
      try {
        return (await downloader.download(source.url, limits)).bytes;
      } catch (error) {
        if (!isParleyError(error, "attachment-gone")) throw error;
        const url = await freshUrl(source, attachment.id).catch((failure: unknown) => {
          // The file is not gone for good: the turn may be run again.
          if (isOutage(failure)) throw failure;
          return undefined;
        });
        if (url === undefined) throw error;
        return (await downloader.download(url, limits)).bytes;
      }
    },
    close: () => downloader.close(),
  };
}
