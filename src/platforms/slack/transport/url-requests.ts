import type { RespondArguments, types } from "@slack/bolt";
import type { WebClient } from "@slack/web-api";
import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { SlackFileInfo, SlackMessageInfo } from "../address.ts";
import { slackErrorCode, toParleyError } from "../errors.ts";
import { translate } from "../../../words/translate.ts";

/*
 * This file holds what Slack's packages lack: requests to a `response_url` and to an upload URL.
 *
 * - Bolt's `respond` exists only inside of a listener, while an answer may end in a later process. Its error
 *   has neither Slack's error code nor Retry-After, and that of `IncomingWebhook` (`@slack/webhook`) has no
 *   Retry-After.
 * - The method `client.filesUploadV2` sends `alt_text`, which Slack ignores in place of `alt_txt`. After a
 *   failure it uploads every file anew, so that files which Slack has accepted would be shown twice.
 */

const uploadTimeoutMs = 120_000;
const respondTimeoutMs = 10_000;

/** Sends a POST that is not retried and follows no redirect. The URL is a secret, and no error holds it. */
async function send(name: string, url: string, init: RequestInit): Promise<void> {
  let response: Response;
  let body: string;
  try {
    response = await fetch(url, { method: "POST", redirect: "error", ...init });
    body = (await response.text()).slice(0, 2000);
  } catch (error) {
    throw toParleyError(error, name);
  }
  if (response.ok) return;
  if (response.status === 429) {
    throw toParleyError({ retryAfter: Number(response.headers.get("retry-after") ?? 1) }, name);
  }
  throw toParleyError(parseErrorBody(body) ?? { statusCode: response.status }, name);
}

function parseErrorBody(body: string): { data: { error: string } } | undefined {
  try {
    const parsed = JSON.parse(body) as { error?: unknown };
    return typeof parsed.error === "string" ? { data: { error: parsed.error } } : undefined;
  } catch {
    // A proxy may have answered with a web page; the status is enough.
    return undefined;
  }
}

export interface ResponseOptions {
  /** The message replaces the one that has the button. */
  readonly isReplacing?: true;
  readonly thread?: string;
  /** Everybody in the channel sees the message, also where the bot is not a member. */
  readonly isPublic?: boolean;
}

export async function respondAt(
  url: string,
  { text, blocks }: { readonly text: string; readonly blocks: types.KnownBlock[] },
  clock: Clock,
  { isReplacing, thread, isPublic = false }: ResponseOptions = {},
): Promise<void> {
  const message: RespondArguments = {
    response_type: isPublic ? "in_channel" : "ephemeral",
    replace_original: isReplacing === true,
    text,
    blocks,
    ...(thread === undefined ? {} : { thread_ts: thread }),
    unfurl_links: false,
    unfurl_media: false,
  };
  await send("response_url", url, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(message),
    signal: clock.timeout(respondTimeoutMs),
  });
}

export interface UploadFile {
  readonly name: string;
  /** The text is empty where there is none. */
  readonly altText: string;
  readonly bytes: Uint8Array;
}

interface UploadOptions {
  readonly call: <T>(method: string, send: (client: WebClient) => Promise<T>) => Promise<T>;
  readonly info: (fileId: string) => Promise<SlackFileInfo>;
  /** Returns the messages of a channel or thread after that `ts`. */
  readonly messagesAfter: (
    channel: string,
    thread: string | undefined,
    ts: string,
  ) => Promise<readonly SlackMessageInfo[]>;
  readonly clock: Clock;
}

/** Slack shows files some time after it has accepted them. It is asked whether it does after these waits. */
const shownWithinMs = [250, 500, 1000, 2000, 4000, 8000] as const;
/** Slack's clock may differ by this much. */
const marginMs = 60_000;

/** This is known of an upload whose last attempt failed. */
interface Begun {
  /** Slack has the bytes of these files, and gave them these ids. */
  readonly sent: Map<UploadFile, string>;
  /** Slack may have got the call that shows the files. */
  mayBeShown: boolean;
  /** Slack has accepted the files before, and not shown them. */
  isSecond: boolean;
}

type FileUpload = (
  channel: string,
  thread: string | undefined,
  files: readonly UploadFile[],
) => Promise<void>;

/**
 * Uploads files in one message. Called again with the same array, it goes on where the last attempt failed:
 * bytes that Slack has are not sent again, and files that it shows by now, though its response was lost, are
 * not shown twice. Files that Slack accepts and does not show within 16 seconds are deleted and uploaded once
 * more.
 */
export function createFileUpload({ call, info, messagesAfter, clock }: UploadOptions): FileUpload {
  const attempts = new WeakMap<readonly UploadFile[], Begun>();

  async function sendBytes({ name, altText, bytes }: UploadFile): Promise<string> {
    const alternative = altText === "" ? {} : { alt_txt: altText };
    const slot = await call("files.getUploadURLExternal", (client) =>
      client.files.getUploadURLExternal({ filename: name, length: bytes.length, ...alternative }),
    );
    await send("file upload", String(slot.upload_url), {
      headers: { "content-type": "application/octet-stream" },
      body: new Uint8Array(bytes),
      signal: clock.timeout(uploadTimeoutMs),
    });
    return String(slot.file_id);
  }

  async function show(channel: string, thread: string | undefined, begun: Begun): Promise<void> {
    const wasTried = begun.mayBeShown;
    begun.mayBeShown = true;
    const [first, ...others] = Array.from(begun.sent, ([{ name }, id]) => ({ id, title: name }));
    if (first === undefined) return;
    const place = { channel_id: channel, ...(thread === undefined ? {} : { thread_ts: thread }) };
    try {
      await call("files.completeUploadExternal", (client) =>
        client.files.completeUploadExternal({ files: [first, ...others], ...place }),
      );
    } catch (error) {
      const isRefused = isParleyError(error) && error.code !== "platform-unreachable";
      // Slack may refuse files as known already that it has accepted before.
      if (isRefused && wasTried && error.code === "platform-rejected" && error.retryAfterMs === undefined)
        throw new ParleyError("platform-unreachable", "Slack still processes an upload", { cause: error });
      begun.mayBeShown = wasTried || !isRefused;
      throw error;
    }
  }

  /** Returns whether the channel shows the file after a while. Where that cannot be known, it says so too. */
  async function appears(id: string, channel: string, thread: string | undefined): Promise<boolean> {
    const since = ((clock.now() - marginMs) / 1000).toFixed(6);
    try {
      for (const waitMs of shownWithinMs) {
        await clock.sleep(waitMs);
        if (isSharedIn(await info(id), channel)) return true;
      }
      const messages = await messagesAfter(channel, thread, since);
      return messages.some(({ files = [] }) => files.some((file) => file.id === id));
    } catch (error) {
      if (isParleyError(error)) return true;
      throw error;
    }
  }

  /** Deletes the files, so that they cannot appear beside those of the next attempt. */
  async function remove(begun: Begun): Promise<void> {
    for (const id of begun.sent.values())
      await call("files.delete", (client) => client.files.delete({ file: id })).catch((error: unknown) => {
        const code = slackErrorCode(error);
        if (code !== "file_not_found" && code !== "file_deleted") throw error;
      });
    begun.sent.clear();
    begun.mayBeShown = false;
  }

  return async (channel, thread, files) => {
    const begun: Begun = attempts.get(files) ?? { sent: new Map(), mayBeShown: false, isSecond: false };
    attempts.set(files, begun);
    for (;;) {
      for (const file of files) if (!begun.sent.has(file)) begun.sent.set(file, await sendBytes(file));
      const [first] = begun.sent.values();
      if (first === undefined || (begun.mayBeShown && isSharedIn(await info(first), channel))) return;
      await show(channel, thread, begun);
      if (await appears(first, channel, thread)) return;
      if (begun.isSecond)
        throw new ParleyError("platform-rejected", "Slack accepted files twice and did not show them", {
          detail: { problem: translate("slack.unshown") },
        });
      begun.isSecond = true;
      await remove(begun);
    }
  };
}

/**
 * Returns whether a channel shows the file.
 * @see https://docs.slack.dev/reference/objects/file-object describes the fields.
 */
function isSharedIn(
  { channels = [], groups = [], ims = [], shares }: SlackFileInfo,
  channel: string,
): boolean {
  if ([...channels, ...groups, ...ims].includes(channel)) return true;
  return [shares?.public, shares?.private].some((all) => all?.[channel] !== undefined);
}
