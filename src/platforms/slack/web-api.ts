import type { WebClient } from "@slack/web-api";
import type { Log } from "../../core/telemetry.ts";
import { toParleyError } from "./errors.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Who the bot is, as its token says. */
export interface Identity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
  /** Scopes the token carries; empty where Slack did not say. */
  readonly scopes: readonly string[];
}

/** A file as Slack describes it. */
export interface SlackFileInfo {
  readonly id: string;
  readonly name?: string | null;
  readonly title?: string | null;
  readonly mimetype?: string;
  readonly size?: number;
  readonly duration_ms?: number;
  readonly url_private?: string;
  readonly url_private_download?: string;
  readonly file_access?: string;
}

/** A message as events and histories describe it. */
export interface SlackMessageInfo {
  readonly ts: string;
  readonly thread_ts?: string;
  readonly user?: string;
  readonly bot_id?: string;
  readonly text?: string;
  readonly files?: readonly SlackFileInfo[];
  readonly metadata?: { readonly event_payload?: { readonly mark?: string } };
}

/** Where a message stands. */
export interface MessageRef {
  readonly channel: string;
  readonly ts: string;
}

/** What a post or edit shows. */
export interface SlackContent {
  /** For notifications and screen readers; escaped. */
  readonly text: string;
  readonly blocks: readonly Fields[];
}

/** The part of Slack's Web API that is used. Every failure is a ParleyError; nothing is tried twice in here. */
export interface SlackApi {
  identify(): Promise<Identity>;
  /** `mark`: kept with the message, unseen, to know it again by. */
  post(
    channel: string,
    thread: string | undefined,
    content: SlackContent,
    mark?: string,
  ): Promise<MessageRef>;
  update(ref: MessageRef, content: SlackContent): Promise<void>;
  /**
   * Posts through a command's or button's `response_url`, seen by the person alone: five times at most, within 30
   * minutes. `isReplacing`: in place of the message that the button stands on.
   */
  respond(responseUrl: string, content: SlackContent, how?: { readonly isReplacing: true }): Promise<void>;
  /** The one message of that `ts`; `undefined`: there is none. */
  message(channel: string, thread: string | undefined, ts: string): Promise<SlackMessageInfo | undefined>;
  /** Up to 100 messages of a channel or thread that came after `ts`, in no particular order. */
  messagesAfter(
    channel: string,
    thread: string | undefined,
    ts: string,
  ): Promise<readonly SlackMessageInfo[]>;
  userName(userId: string): Promise<string>;
  fileInfo(fileId: string): Promise<SlackFileInfo>;
  /** Posts files in one message. */
  upload(
    channel: string,
    thread: string | undefined,
    files: readonly { readonly name: string; readonly altText: string; readonly bytes: Uint8Array }[],
  ): Promise<void>;
  openModal(triggerId: string, view: Fields): Promise<void>;
  setStatus(channel: string, thread: string, status: string): Promise<void>;
  setSessionStatus(channel: string, thread: string, status: "active" | "processing"): Promise<void>;
  suggestPrompts(channel: string, prompts: readonly { title: string; message: string }[]): Promise<void>;
}

const uploadTimeoutMs = 120_000;
const respondTimeoutMs = 10_000;

/** Slack's Web API over the official client, which is given a method and arguments and nothing else. */
export function createSlackApi(client: WebClient, log: Log): SlackApi {
  async function call(method: string, args: Record<string, unknown>): Promise<Fields> {
    try {
      return { ...(await client.apiCall(method, args)) };
    } catch (error) {
      const failure = toParleyError(error, method);
      log.debug({ method, code: failure.code, ...failure.detail }, "Slack did not do what was asked");
      throw failure;
    }
  }

  /** A POST that the client does not offer. Never retried, never redirected; the URL is a secret. */
  async function send(what: string, url: string, init: RequestInit): Promise<string> {
    let response: Response;
    try {
      response = await fetch(url, { method: "POST", redirect: "error", ...init });
    } catch (error) {
      throw toParleyError(error, what);
    }
    const body = (await response.text()).slice(0, 2000);
    if (response.status === 429) {
      throw toParleyError({ retryAfter: Number(response.headers.get("retry-after") ?? 1) }, what);
    }
    if (response.ok) return body;
    throw toParleyError(readError(body) ?? { statusCode: response.status }, what);
  }

  async function read(channel: string, thread: string | undefined, window: Record<string, unknown>) {
    const answer =
      thread === undefined
        ? await call("conversations.history", { channel, ...window })
        : await call("conversations.replies", { channel, ts: thread, ...window });
    return (answer["messages"] ?? []) as readonly SlackMessageInfo[];
  }

  return {
    async identify() {
      const answer = await call("auth.test", {});
      const metadata = answer["response_metadata"] as { scopes?: readonly string[] } | undefined;
      return {
        teamId: String(answer["team_id"]),
        userId: String(answer["user_id"]),
        botId: String(answer["bot_id"]),
        scopes: metadata?.scopes ?? [],
      };
    },
    async post(channel, thread, { text, blocks }, mark) {
      const answer = await call("chat.postMessage", {
        channel,
        text,
        blocks,
        ...(thread === undefined ? {} : { thread_ts: thread }),
        ...(mark === undefined ? {} : { metadata: { event_type: "parley_reply", event_payload: { mark } } }),
        unfurl_links: false,
        unfurl_media: false,
      });
      return { channel: String(answer["channel"]), ts: String(answer["ts"]) };
    },
    async update(ref, { text, blocks }) {
      await call("chat.update", { channel: ref.channel, ts: ref.ts, text, blocks });
    },
    async respond(responseUrl, { text, blocks }, how) {
      await send("response_url", responseUrl, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          response_type: "ephemeral",
          replace_original: how?.isReplacing === true,
          text,
          blocks,
          unfurl_links: false,
          unfurl_media: false,
        }),
        signal: AbortSignal.timeout(respondTimeoutMs),
      });
    },
    async message(channel, thread, ts) {
      // A thread's answer begins with its root, whatever was asked for.
      const found = await read(channel, thread, { oldest: ts, latest: ts, inclusive: true, limit: 5 });
      return found.find((message) => message.ts === ts);
    },
    messagesAfter: (channel, thread, ts) =>
      read(channel, thread, { oldest: ts, limit: 100, include_all_metadata: true }),
    async userName(userId) {
      const { user } = (await call("users.info", { user: userId })) as {
        user?: { name?: string; real_name?: string; profile?: { display_name?: string; real_name?: string } };
      };
      const names = [user?.profile?.display_name, user?.profile?.real_name, user?.real_name, user?.name];
      return names.find((name) => name !== undefined && name !== "") ?? userId;
    },
    async fileInfo(fileId) {
      return (await call("files.info", { file: fileId }))["file"] as SlackFileInfo;
    },
    async upload(channel, thread, files) {
      const done: { id: string; title: string }[] = [];
      for (const { name, altText, bytes } of files) {
        // `alt_txt` is the API's word; the client's own upload helper writes `alt_text`, which Slack ignores.
        const place = await call("files.getUploadURLExternal", {
          filename: name,
          length: bytes.length,
          ...(altText === "" ? {} : { alt_txt: altText }),
        });
        await send("file upload", String(place["upload_url"]), {
          headers: { "content-type": "application/octet-stream" },
          body: new Uint8Array(bytes),
          signal: AbortSignal.timeout(uploadTimeoutMs),
        });
        done.push({ id: String(place["file_id"]), title: name });
      }
      await call("files.completeUploadExternal", {
        files: done,
        channel_id: channel,
        ...(thread === undefined ? {} : { thread_ts: thread }),
      });
    },
    async openModal(triggerId, view) {
      await call("views.open", { trigger_id: triggerId, view });
    },
    async setStatus(channel, thread, status) {
      await call("assistant.threads.setStatus", { channel_id: channel, thread_ts: thread, status });
    },
    async setSessionStatus(channel, thread, status) {
      await call("agents.sessions.setStatus", { channel_id: channel, thread_ts: thread, status });
    },
    async suggestPrompts(channel, prompts) {
      // With a `thread_ts` the call would answer ok and do nothing.
      await call("assistant.threads.setSuggestedPrompts", { channel_id: channel, prompts });
    },
  };
}

function readError(body: string): { data: { error: string } } | undefined {
  try {
    const parsed = JSON.parse(body) as { error?: unknown };
    return typeof parsed.error === "string" ? { data: { error: parsed.error } } : undefined;
  } catch {
    return undefined;
  }
}
