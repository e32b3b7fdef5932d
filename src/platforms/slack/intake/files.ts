import { ParleyError } from "../../../core/errors.ts";
import type { Attachment, Json } from "../../../core/events.ts";
import type { DownloadOptions } from "../../../core/platform.ts";
import type { ReplyFile } from "../../../core/reply.ts";
import { createDownloader, type Downloader, type TrustedHost } from "../../../media/guarded-download.ts";
import type { SlackAddress, SlackFileInfo } from "../address.ts";
import { slackErrorCode } from "../errors.ts";
import type { SlackApi } from "../transport/web-api.ts";

const downloadTimeoutMs = 120_000;

/** Converts a file of an event. A Slack Connect file has only an id until `files.info` is called. */
export function toAttachment(file: SlackFileInfo, teamId: string): Attachment {
  const url = file.url_private_download ?? file.url_private;
  const document = documentKind(file);
  const name = file.name ?? file.title ?? file.id;
  return {
    id: file.id,
    name: document === undefined ? name : `${file.title ?? name} (Slack ${document})`,
    ...(file.mimetype === undefined ? {} : { mediaType: file.mimetype }),
    ...(file.size === undefined ? {} : { sizeBytes: file.size }),
    ...(file.duration_ms === undefined ? {} : { durationMs: file.duration_ms }),
    ...(file.alt_txt === undefined || file.alt_txt === "" ? {} : { altText: file.alt_txt }),
    source: {
      id: file.id,
      team: teamId,
      ...(url === undefined ? {} : { url }),
      ...(document === undefined ? {} : { document }),
    },
  };
}

/** Returns the kind of what is listed as a file without being one. Slack sends a page of its own for it. */
function documentKind({ mode, filetype }: SlackFileInfo): "canvas" | "list" | undefined {
  const kinds = [mode, filetype];
  if (kinds.includes("quip") || kinds.includes("canvas")) return "canvas";
  return kinds.includes("list") ? "list" : undefined;
}

interface Source {
  readonly id?: string;
  readonly url?: string;
  readonly team?: string;
  readonly document?: string;
}

/** Returns whether the event carries only the file's id. */
export function isUnresolved(file: SlackFileInfo): boolean {
  return (
    file.file_access === "check_file_info" ||
    (file.url_private === undefined && file.url_private_download === undefined)
  );
}

interface FilesOptions {
  readonly api: Pick<SlackApi, "fileInfo">;
  /** Returns the bot's current token. */
  readonly token: () => Promise<string>;
  readonly apiUrl: string;
}

/** Downloads from Slack's hosts and the configured API host. The token is sent to no other host. */
export function createFiles({ api, token, apiUrl }: FilesOptions) {
  let current: { readonly authorization: string; readonly downloader: Downloader } | undefined;

  /** Returns the downloader of the current token. Downloads with an older token go on. */
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
    if (documentKind(file) !== undefined) throw toDocumentError(attachment.name);
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
    /** Downloads as {@link Platform.download} says. */
    async download(attachment: Attachment, { maxBytes, signal }: DownloadOptions): Promise<Uint8Array> {
      if (parseSource(attachment.source).document !== undefined) throw toDocumentError(attachment.name);
      const url = await urlOf(attachment);
      const downloader = await downloaderNow();
      const { bytes, mediaType } = await downloader.download(url, {
        maxBytes,
        signal,
        timeoutMs: downloadTimeoutMs,
      });
      // Without the scope, or without a valid token, Slack returns 200 and its login page.
      if (mediaType === "text/html" && isLoginPage(attachment, bytes)) {
        throw new ParleyError("platform-forbidden", "Slack returned its login page for a file", {
          detail: { permission: "files:read" },
        });
      }
      return bytes;
    },
    close: async (): Promise<void> => await current?.downloader.close(),
  };
}

function toDocumentError(name: string): ParleyError {
  return new ParleyError("attachment-unreadable", "Slack's canvases and lists are pages, not files", {
    detail: { name },
  });
}

/** Tells Slack's login page from an uploaded HTML file, which has the size that its event says. */
function isLoginPage(attachment: Attachment, bytes: Uint8Array): boolean {
  return attachment.mediaType !== "text/html" || attachment.sizeBytes !== bytes.length;
}

/** Returns the workspace whose event had the file, and `undefined` for files that name none. */
export function teamOfFile({ source }: Attachment): string | undefined {
  return parseSource(source).team;
}

function parseSource(source: Json): Source {
  return typeof source === "object" && source !== null && !Array.isArray(source) ? (source as Source) : {};
}

function trustedHosts(apiUrl: string, authorization: string): TrustedHost[] {
  const api = new URL(apiUrl);
  return [
    { host: "*.slack.com", authorization },
    { host: "*.slack-gov.com", authorization },
    { host: api.host, authorization, allowHttp: api.protocol === "http:" },
  ];
}

/** The time of a command comes from the clock of a machine, which may differ by this much. */
const marginMs = 60_000;

/**
 * Returns whether one message of the bot shows exactly these files, by name and size: an earlier call, maybe
 * of an earlier process, has shared them, and its response was lost. It also returns false where the history
 * is closed to the bot.
 */
export async function areShared(
  api: Pick<SlackApi, "messagesAfter">,
  { channel, thread, since }: SlackAddress,
  files: readonly ReplyFile[],
  botUserId: string,
): Promise<boolean> {
  const wanted = toKey(files.map(({ name, bytes }) => ({ name, size: bytes.length })));
  const after = ((since - marginMs) / 1000).toFixed(6);
  const messages = await api.messagesAfter(channel, thread, after);
  return messages.some((message) => message.user === botUserId && toKey(message.files ?? []) === wanted);
}

function toKey(files: readonly { readonly name?: string | null; readonly size?: number }[]): string {
  return JSON.stringify(files.map(({ name, size }) => [name, size]));
}
