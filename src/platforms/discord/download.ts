import { isParleyError } from "../../core/errors.ts";
import type { Attachment } from "../../core/events.ts";
import type { DownloadOptions } from "../../core/platform.ts";
import { createDownloader, type Downloader } from "../../media/guarded-download.ts";
import { isOutage } from "../delivery/receive-patiently.ts";
import type { DiscordApi } from "./api.ts";
import type { AttachmentSource } from "./incoming.ts";

const timeoutMs = 60_000;

/** Downloads attachments, from Discord's hosts and the configured API's host only. */
export interface AttachmentDownload {
  /** @throws ParleyError as {@link Platform.download} */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** @see {@link AttachmentDownload} */
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

  /** URLs expire after about a day. The message, fetched again, has a valid one. */
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
          // Not gone for good: the turn may be run again.
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
