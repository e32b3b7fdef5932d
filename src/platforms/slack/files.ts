import { ParleyError } from "../../core/errors.ts";
import type { Attachment, Json } from "../../core/events.ts";
import type { DownloadOptions } from "../../core/platform.ts";
import { createDownloader, type Downloader } from "../../media/guarded-download.ts";
import type { TrustedHost } from "../../media/trusted-hosts.ts";
import { slackErrorCode } from "./errors.ts";
import type { SlackFileInfo } from "./message-info.ts";
import type { SlackApi } from "./web-api.ts";

const downloadTimeoutMs = 120_000;

/**
 * A file of an event in the workspace with this id. A Slack Connect file has only an id until `files.info` is called.
 */
export function toAttachment(file: SlackFileInfo, teamId: string): Attachment {
  const url = file.url_private_download ?? file.url_private;
  return {
    id: file.id,
    name: file.name ?? file.title ?? file.id,
    ...(file.mimetype === undefined ? {} : { mediaType: file.mimetype }),
    ...(file.size === undefined ? {} : { sizeBytes: file.size }),
    ...(file.duration_ms === undefined ? {} : { durationMs: file.duration_ms }),
    ...(file.alt_txt === undefined || file.alt_txt === "" ? {} : { altText: file.alt_txt }),
    source: { id: file.id, team: teamId, ...(url === undefined ? {} : { url }) },
  };
}

/** Whether the event carries only the file's id. */
export function isUnresolved(file: SlackFileInfo): boolean {
  return (
    file.file_access === "check_file_info" ||
    (file.url_private === undefined && file.url_private_download === undefined)
  );
}

/** What {@link createFiles} needs. */
export interface FilesOptions {
  readonly api: Pick<SlackApi, "fileInfo">;
  /** The bot's current token. */
  readonly token: () => Promise<string>;
  readonly apiUrl: string;
}

/** Downloads of people's files. */
export interface Files {
  /** @see Platform.download */
  download(attachment: Attachment, options: DownloadOptions): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** Downloads from Slack's hosts and the configured API host; the token is sent to no other host. */
export function createFiles({ api, token, apiUrl }: FilesOptions): Files {
  let current: { readonly authorization: string; readonly downloader: Downloader } | undefined;

  /** A token changes a few times a day at most; downloads with the old one go on. */
  async function downloaderNow(): Promise<Downloader> {
    const authorization = `Bearer ${await token()}`;
    if (current?.authorization !== authorization) {
      const trusted = trustedHosts(apiUrl, authorization);
      current = { authorization, downloader: createDownloader({ trusted, allowPublicHttps: false }) };
    }
    return current.downloader;
  }

  async function urlOf(attachment: Attachment): Promise<string> {
    const { id, url } = parseSource(attachment.source);
    if (url !== undefined) return url;
    const file = await lookUp(id ?? attachment.id, attachment.name);
    const found = file.url_private_download ?? file.url_private;
    if (found !== undefined) return found;
    throw new ParleyError("attachment-gone", "the file has no download URL", {
      detail: { name: attachment.name },
    });
  }

  async function lookUp(id: string, name: string): Promise<SlackFileInfo> {
    try {
      return await api.fileInfo(id);
    } catch (error) {
      const code = slackErrorCode(error);
      if (code !== "file_not_found" && code !== "file_deleted") throw error;
      throw new ParleyError("attachment-gone", "the file was deleted", { detail: { name }, cause: error });
    }
  }

  return {
    async download(attachment, { maxBytes, signal }) {
      const url = await urlOf(attachment);
      const downloader = await downloaderNow();
      const { bytes, mediaType } = await downloader.download(url, {
        maxBytes,
        signal,
        timeoutMs: downloadTimeoutMs,
      });
      // Without the scope (or a valid token) Slack returns 200 and its login page.
      if (mediaType === "text/html" && isLoginPage(attachment, bytes)) {
        throw new ParleyError("platform-forbidden", "Slack returned its login page for a file", {
          detail: { permission: "files:read" },
        });
      }
      return bytes;
    },
    close: async () => await current?.downloader.close(),
  };
}

/** An uploaded HTML file has the size of its event; the login page does not. */
function isLoginPage(attachment: Attachment, bytes: Uint8Array): boolean {
  return attachment.mediaType !== "text/html" || attachment.sizeBytes !== bytes.length;
}

/** The workspace whose event had the file. `undefined`: stored by a version for one workspace. */
export function teamOfFile({ source }: Attachment): string | undefined {
  return parseSource(source).team;
}

function parseSource(source: Json): { id?: string; url?: string; team?: string } {
  return typeof source === "object" && source !== null && !Array.isArray(source)
    ? (source as { id?: string; url?: string; team?: string })
    : {};
}

function trustedHosts(apiUrl: string, authorization: string): TrustedHost[] {
  const api = new URL(apiUrl);
  return [
    { host: "*.slack.com", authorization },
    { host: "*.slack-gov.com", authorization },
    { host: api.host, authorization, allowHttp: api.protocol === "http:" },
  ];
}
