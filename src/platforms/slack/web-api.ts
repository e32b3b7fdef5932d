import type { WebClient } from "@slack/web-api";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import type { MessagePage, MessageWindow, SlackFileInfo, SlackMessageInfo } from "./address.ts";
import { isTokenRefusal, slackErrorCode, toParleyError } from "./errors.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The bot, as `auth.test` describes it. */
export interface Identity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
  /** Scopes of the token; empty if Slack did not list them. */
  readonly scopes: readonly string[];
}

/** A person as Slack describes them. */
export interface SlackUserInfo {
  /** The display name. */
  readonly name: string;
  /** The workspace that they belong to. */
  readonly teamId: string | undefined;
  /** In an organisation of several workspaces: all that they are in. */
  readonly teams: readonly string[];
  /** Admins and owners of the workspace. */
  readonly isAdmin: boolean;
  /** From another workspace, and in no channel that the app sees. */
  readonly isStranger: boolean;
  /** Of the person's client: `de-DE`. */
  readonly locale?: string;
}

/** Hidden metadata of an own message, by which it is found. */
export interface MessageMark {
  /** Names the reply and the message's place in it. */
  readonly mark: string;
  /** `ts` of the message that it was posted in place of. */
  readonly replaces?: string;
}

/** Where a stream begins. */
export interface StreamStart {
  readonly channel: string;
  readonly thread: string;
  /** The person who is answered; required outside of direct messages. */
  readonly recipient: { readonly user: string; readonly team: string };
}

/** A message's channel and `ts`. */
export interface MessageRef {
  readonly channel: string;
  readonly ts: string;
}

/** Content of a message. */
export interface SlackContent {
  /** Fallback for notifications and screen readers; escaped. */
  readonly text: string;
  readonly blocks: readonly Fields[];
}

/** What {@link SlackApi.stopStream} adds. */
export interface StreamEnd {
  /** Empty: no more text. */
  readonly markdown: string;
  readonly blocks: readonly Fields[];
  readonly mark: MessageMark;
}

/** The part of Slack's Web API that Parley uses. Failures are ParleyErrors; no call is retried. */
export interface SlackApi extends AgentApi {
  identify(): Promise<Identity>;
  /** A user id as `channel` means that person's direct messages. */
  post(
    channel: string,
    thread: string | undefined,
    content: SlackContent,
    mark?: MessageMark,
  ): Promise<MessageRef>;
  /** Replaces a message's content, and its metadata where a `mark` is given. */
  update(ref: MessageRef, content: SlackContent, mark?: MessageMark): Promise<void>;
  /** Deletes an own message. */
  remove(ref: MessageRef): Promise<void>;
  /** Posts an empty message that grows. It takes no metadata, and links in its text are unfurled. */
  startStream(start: StreamStart, markdown: string): Promise<MessageRef>;
  appendStream(ref: MessageRef, markdown: string): Promise<void>;
  /** Ends a stream with the rest of its text; `blocks` stand below it. */
  stopStream(ref: MessageRef, end: StreamEnd): Promise<void>;
  /** Posts a message that only `user` sees, in a channel or in a thread with replies. */
  postEphemeral(
    channel: string,
    thread: string | undefined,
    user: string,
    content: SlackContent,
  ): Promise<void>;
  /**
   * Posts an ephemeral message through a command's or button's `response_url`: at most five times within 30 minutes.
   * `isReplacing` replaces the message that has the button; `thread` posts into that thread; `isPublic`: everybody in the
   * channel sees it, also where the bot is not a member.
   */
  respond(
    responseUrl: string,
    content: SlackContent,
    options?: { readonly isReplacing?: true; readonly thread?: string; readonly isPublic?: boolean },
  ): Promise<void>;
  /** The message with that `ts`, if it exists. */
  message(channel: string, thread: string | undefined, ts: string): Promise<SlackMessageInfo | undefined>;
  /** One page of a channel's or thread's messages. */
  page(channel: string, thread: string | undefined, window: MessageWindow): Promise<MessagePage>;
  /**
   * The messages after `ts`, at most 1,000: of a channel the latest, newest first; of a thread the earliest, oldest
   * first. They are read page by page, as they are used.
   */
  messagesAfter(channel: string, thread: string | undefined, ts: string): AsyncIterable<SlackMessageInfo>;
  userInfo(userId: string): Promise<SlackUserInfo>;
  /** Name of a channel. `undefined`: a direct message. */
  channelName(channel: string): Promise<string | undefined>;
  fileInfo(fileId: string): Promise<SlackFileInfo>;
  /** Posts files in one message. Called again with the same array, it goes on where it failed. */
  upload(channel: string, thread: string | undefined, files: readonly UploadFile[]): Promise<void>;
  openModal(triggerId: string, view: Fields): Promise<void>;
}

/** The part of `users.info` that is read. Fields about rights are absent for users of other workspaces. */
interface UserResponse {
  readonly name?: string;
  readonly real_name?: string;
  readonly locale?: string;
  readonly profile?: { readonly display_name?: string; readonly real_name?: string };
  readonly team_id?: string;
  readonly enterprise_user?: { readonly teams?: readonly string[] };
  readonly is_admin?: boolean;
  readonly is_owner?: boolean;
  readonly is_primary_owner?: boolean;
  readonly is_stranger?: boolean;
}

const pageSize = 100;
const maxPages = 10;
const uploadTimeoutMs = 120_000;
const respondTimeoutMs = 10_000;

/** How calls reach Slack. */
export interface ApiAccess {
  /** What is to be checked where Slack refuses the token. */
  readonly tokenSource: string;
  /** With the current token. @throws ParleyError `platform-unauthorized` where there is none any more */
  client(): Promise<WebClient>;
  /** Called with Slack's error code when it refuses the token, and with `undefined` when it accepts it. */
  used(refusal: string | undefined): void;
}

/** Slack's Web API over the official client. */
export function createSlackApi(access: ApiAccess, log: Log, clock: Clock): SlackApi {
  async function call(method: string, args: Record<string, unknown>): Promise<Fields> {
    const client = await access.client();
    try {
      const response = await client.apiCall(method, args);
      access.used(undefined);
      return { ...response };
    } catch (error) {
      const failure = toParleyError(error, method, access.tokenSource);
      const code = slackErrorCode(failure);
      if (code !== undefined && isTokenRefusal(code)) access.used(code);
      log.debug({ method, code: failure.code, ...failure.detail }, "Slack call failed");
      throw failure;
    }
  }

  /** A POST outside the client. It is not retried and follows no redirect; the URL is a secret and is not logged. */
  async function send(name: string, url: string, init: RequestInit): Promise<string> {
    let response: Response;
    try {
      response = await fetch(url, { method: "POST", redirect: "error", ...init });
    } catch (error) {
      throw toParleyError(error, name);
    }
    const body = (await response.text()).slice(0, 2000);
    if (response.status === 429) {
      throw toParleyError({ retryAfter: Number(response.headers.get("retry-after") ?? 1) }, name);
    }
    if (response.ok) return body;
    throw toParleyError(parseErrorBody(body) ?? { statusCode: response.status }, name);
  }

  async function read(
    channel: string,
    thread: string | undefined,
    window: Record<string, unknown>,
  ): Promise<MessagePage> {
    const response =
      thread === undefined
        ? await call("conversations.history", { channel, ...window })
        : await call("conversations.replies", { channel, ts: thread, ...window });
    const metadata = response["response_metadata"] as { next_cursor?: string } | undefined;
    return {
      messages: (response["messages"] ?? []) as readonly SlackMessageInfo[],
      cursor: metadata?.next_cursor ?? "",
    };
  }

  const fileInfo = async (fileId: string): Promise<SlackFileInfo> =>
    (await call("files.info", { file: fileId }))["file"] as SlackFileInfo;

  const upload = createFileUpload({
    async slot({ name, altText, bytes }) {
      // `alt_txt` is the API's name; the client's own upload helper sends `alt_text`, which Slack ignores.
      const slot = await call("files.getUploadURLExternal", {
        filename: name,
        length: bytes.length,
        ...(altText === "" ? {} : { alt_txt: altText }),
      });
      return { id: String(slot["file_id"]), url: String(slot["upload_url"]) };
    },
    async send(url, bytes) {
      await send("file upload", url, {
        headers: { "content-type": "application/octet-stream" },
        body: new Uint8Array(bytes),
        signal: clock.timeout(uploadTimeoutMs),
      });
    },
    async complete({ channel, thread }, files) {
      await call("files.completeUploadExternal", {
        files,
        channel_id: channel,
        ...(thread === undefined ? {} : { thread_ts: thread }),
      });
    },
    info: fileInfo,
  });

  return {
    async identify() {
      const response = await call("auth.test", {});
      const metadata = response["response_metadata"] as { scopes?: readonly string[] } | undefined;
      return {
        teamId: String(response["team_id"]),
        userId: String(response["user_id"]),
        botId: String(response["bot_id"]),
        scopes: metadata?.scopes ?? [],
      };
    },
    async post(channel, thread, { text, blocks }, mark) {
      const response = await call("chat.postMessage", {
        channel,
        text,
        blocks,
        ...(thread === undefined ? {} : { thread_ts: thread }),
        ...toMetadata(mark),
        unfurl_links: false,
        unfurl_media: false,
      });
      return { channel: String(response["channel"]), ts: String(response["ts"]) };
    },
    async postEphemeral(channel, thread, user, { text, blocks }) {
      await call("chat.postEphemeral", {
        channel,
        user,
        text,
        blocks,
        ...(thread === undefined ? {} : { thread_ts: thread }),
      });
    },
    async update(ref, { text, blocks }, mark) {
      await call("chat.update", { channel: ref.channel, ts: ref.ts, text, blocks, ...toMetadata(mark) });
    },
    async remove({ channel, ts }) {
      await call("chat.delete", { channel, ts });
    },
    async startStream({ channel, thread, recipient }, markdown) {
      const response = await call("chat.startStream", {
        channel,
        thread_ts: thread,
        recipient_user_id: recipient.user,
        recipient_team_id: recipient.team,
        ...(markdown === "" ? {} : { markdown_text: markdown }),
      });
      return { channel: String(response["channel"]), ts: String(response["ts"]) };
    },
    async appendStream({ channel, ts }, markdown) {
      await call("chat.appendStream", { channel, ts, markdown_text: markdown });
    },
    async stopStream({ channel, ts }, { markdown, blocks, mark }) {
      await call("chat.stopStream", {
        channel,
        ts,
        ...(markdown === "" ? {} : { markdown_text: markdown }),
        ...(blocks.length === 0 ? {} : { blocks }),
        ...toMetadata(mark),
      });
    },
    async respond(responseUrl, { text, blocks }, options) {
      await send("response_url", responseUrl, {
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          response_type: options?.isPublic === true ? "in_channel" : "ephemeral",
          replace_original: options?.isReplacing === true,
          text,
          blocks,
          ...(options?.thread === undefined ? {} : { thread_ts: options.thread }),
          unfurl_links: false,
          unfurl_media: false,
        }),
        signal: clock.timeout(respondTimeoutMs),
      });
    },
    async message(channel, thread, ts) {
      // `conversations.replies` always includes the root.
      const { messages } = await read(channel, thread, { oldest: ts, latest: ts, inclusive: true, limit: 5 });
      return messages.find((message) => message.ts === ts);
    },
    page: (channel, thread, { oldest, latest, limit, cursor }) =>
      read(channel, thread, {
        limit,
        ...(oldest === undefined ? {} : { oldest }),
        ...(latest === undefined ? {} : { latest }),
        ...(cursor === "" ? {} : { cursor }),
      }),
    async *messagesAfter(channel, thread, ts) {
      let cursor = "";
      for (let page = 0; page < maxPages; page++) {
        const found = await read(channel, thread, {
          oldest: ts,
          limit: pageSize,
          include_all_metadata: true,
          ...(cursor === "" ? {} : { cursor }),
        });
        yield* found.messages;
        ({ cursor } = found);
        if (cursor === "") return;
      }
    },
    async userInfo(userId) {
      const { user = {} } = (await call("users.info", { user: userId, include_locale: true })) as {
        user?: UserResponse;
      };
      const names = [user.profile?.display_name, user.profile?.real_name, user.real_name, user.name];
      return {
        name: names.find((name) => name !== undefined && name !== "") ?? userId,
        teamId: user.team_id,
        teams: user.enterprise_user?.teams ?? [],
        isAdmin: user.is_admin === true || user.is_owner === true || user.is_primary_owner === true,
        isStranger: user.is_stranger === true,
        ...(user.locale === undefined ? {} : { locale: user.locale }),
      };
    },
    async channelName(channel) {
      const info = (await call("conversations.info", { channel }))["channel"] as
        | { name?: string }
        | undefined;
      return info?.name;
    },
    fileInfo,
    upload: (channel, thread, files) => upload({ channel, thread }, files),
    async openModal(triggerId, view) {
      await call("views.open", { trigger_id: triggerId, view });
    },
    ...createAgentApi(call),
  };
}

function toMetadata(mark: MessageMark | undefined): Fields {
  return mark === undefined ? {} : { metadata: { event_type: "parley_reply", event_payload: mark } };
}

function parseErrorBody(body: string): { data: { error: string } } | undefined {
  try {
    const parsed = JSON.parse(body) as { error?: unknown };
    return typeof parsed.error === "string" ? { data: { error: parsed.error } } : undefined;
  } catch {
    // A proxy's web page; the status is enough.
    return undefined;
  }
}

/** The state of the agent's session in a thread. */
export interface SessionState {
  readonly status: "active" | "processing";
  /** Where the session is created: at most 200 characters. */
  readonly title?: string | undefined;
}

/** The part of Slack's Web API that shows the bot as an agent. Failures are ParleyErrors; no call is retried. */
interface AgentApi {
  /** The line below a thread; empty: none. */
  setStatus(channel: string, thread: string, status: string): Promise<void>;
  /** Creates the session where there is none. */
  setSessionStatus(channel: string, thread: string, session: SessionState): Promise<void>;
  renameSession(channel: string, thread: string, title: string): Promise<void>;
  suggestPrompts(channel: string, prompts: readonly { title: string; message: string }[]): Promise<void>;
  /** The channel of a person's direct messages with the bot. */
  openDirectMessages(userId: string): Promise<string>;
  /** Replaces a person's Home tab. */
  publishHome(userId: string, view: Fields): Promise<void>;
}

/** @see {@link AgentApi} */
function createAgentApi(call: (method: string, args: Record<string, unknown>) => Promise<Fields>): AgentApi {
  return {
    async setStatus(channel, thread, status) {
      await call("assistant.threads.setStatus", { channel_id: channel, thread_ts: thread, status });
    },
    async setSessionStatus(channel, thread, { status, title }) {
      await call("agents.sessions.setStatus", {
        channel_id: channel,
        thread_ts: thread,
        status,
        ...(title === undefined || title === "" ? {} : { title }),
      });
    },
    async renameSession(channel, thread, title) {
      await call("agents.sessions.rename", { channel_id: channel, thread_ts: thread, title });
    },
    async suggestPrompts(channel, prompts) {
      // With a `thread_ts` the call returns ok and does nothing.
      await call("assistant.threads.setSuggestedPrompts", { channel_id: channel, prompts });
    },
    async openDirectMessages(userId) {
      const { channel } = (await call("conversations.open", { users: userId })) as {
        channel: { id: string };
      };
      return channel.id;
    },
    async publishHome(userId, view) {
      await call("views.publish", { user_id: userId, view });
    },
  };
}

/** A file to upload. */
interface UploadFile {
  readonly name: string;
  /** Empty: none. */
  readonly altText: string;
  readonly bytes: Uint8Array;
}

/** Where uploaded files are shown. */
interface UploadPlace {
  readonly channel: string;
  readonly thread: string | undefined;
}

/** The calls that an upload consists of. */
interface UploadCalls {
  /** A URL that takes the bytes of one file, and the file's id. */
  slot(file: UploadFile): Promise<{ readonly id: string; readonly url: string }>;
  send(url: string, bytes: Uint8Array): Promise<void>;
  /** Shows files in one message. Slack does so some time after its response. */
  complete(
    place: UploadPlace,
    files: readonly { readonly id: string; readonly title: string }[],
  ): Promise<void>;
  info(fileId: string): Promise<SlackFileInfo>;
}

/** What is known of an upload whose last attempt failed. */
interface Begun {
  /** Ids of the files whose bytes Slack has. */
  readonly sent: Map<UploadFile, string>;
  /** Slack may have got the call that shows them. */
  mayBeShown: boolean;
}

/**
 * Uploads files in one message. Called again with the same array, it goes on where the last attempt failed: bytes that
 * Slack has are not sent again, and files that it shows by now, though its response was lost, are not shown twice.
 */
function createFileUpload(
  calls: UploadCalls,
): (place: UploadPlace, files: readonly UploadFile[]) => Promise<void> {
  const attempts = new WeakMap<readonly UploadFile[], Begun>();

  async function send(file: UploadFile): Promise<string> {
    const { id, url } = await calls.slot(file);
    await calls.send(url, file.bytes);
    return id;
  }

  async function show(place: UploadPlace, files: readonly UploadFile[], begun: Begun): Promise<void> {
    const wasTried = begun.mayBeShown;
    begun.mayBeShown = true;
    try {
      await calls.complete(
        place,
        files.map((file) => ({ id: begun.sent.get(file) ?? "", title: file.name })),
      );
    } catch (error) {
      const isRefused = isParleyError(error) && error.code !== "platform-unreachable";
      // What was accepted before may be refused as known already.
      if (isRefused && wasTried && error.code === "platform-rejected" && error.retryAfterMs === undefined)
        throw new ParleyError("platform-unreachable", "Slack still processes an upload", { cause: error });
      begun.mayBeShown = wasTried || !isRefused;
      throw error;
    }
  }

  return async (place, files) => {
    const begun = attempts.get(files) ?? { sent: new Map<UploadFile, string>(), mayBeShown: false };
    attempts.set(files, begun);
    for (const file of files) if (!begun.sent.has(file)) begun.sent.set(file, await send(file));
    const [first] = begun.sent.values();
    const isShown =
      begun.mayBeShown && first !== undefined && isSharedIn(await calls.info(first), place.channel);
    if (!isShown) await show(place, files, begun);
  };
}

/** @see https://docs.slack.dev/reference/objects/file-object */
function isSharedIn(
  { channels = [], groups = [], ims = [], shares }: SlackFileInfo,
  channel: string,
): boolean {
  if ([...channels, ...groups, ...ims].includes(channel)) return true;
  return [shares?.public, shares?.private].some((all) => all?.[channel] !== undefined);
}
