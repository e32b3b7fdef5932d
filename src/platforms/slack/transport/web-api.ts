import type { types } from "@slack/bolt";
import type { ChatPostMessageArguments, WebClient } from "@slack/web-api";
import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { MessagePage, MessageRef, MessageWindow, SlackFileInfo, SlackMessageInfo } from "../address.ts";
import { isTokenRefusal, slackErrorCode, toParleyError } from "../errors.ts";
import { createFileUpload, type ResponseOptions, respondAt, type UploadFile } from "./url-requests.ts";

/** This is the bot, as `auth.test` describes it. */
export interface Identity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
  /** This is the address of the workspace, with which addresses of its messages begin. */
  readonly url?: string;
  /** The token has these scopes. They are empty if Slack did not list them. */
  readonly scopes: readonly string[];
}

export interface SlackUserInfo {
  readonly name: string;
  /** This is the workspace that the person belongs to. */
  readonly teamId: string | undefined;
  /** In an organisation of several workspaces these are all that the person is in. */
  readonly teams: readonly string[];
  /** The person is an admin or an owner of the workspace. */
  readonly isAdmin: boolean;
  /** The person is from another workspace, and in no channel that the app sees. */
  readonly isStranger: boolean;
  /** This is the locale of the person's client, such as `de-DE`. */
  readonly locale?: string;
}

export interface SlackContent {
  /** The text is escaped, and is the fallback for notifications and screen readers. */
  readonly text: string;
  readonly blocks: types.KnownBlock[];
}

/** {@link SlackApi.stopStream} adds this. */
export interface StreamEnd {
  /** The answer goes on in the message, so that its session stays at work. */
  readonly goesOn: boolean;
  /** The Markdown is empty where there is no more text. */
  readonly markdown: string;
  readonly blocks: types.KnownBlock[];
  readonly mark: string;
}

/** Parley uses this part of Slack's Web API. Failures are ParleyErrors, and no call is retried. */
export interface SlackApi {
  identify(): Promise<Identity>;
  /**
   * Posts a message. A user id as `channel` means that person's direct messages. By the `mark`, which nobody
   * sees, the message is found again.
   */
  post(
    channel: string,
    thread: string | undefined,
    content: SlackContent,
    mark?: string,
  ): Promise<MessageRef>;
  /** Replaces a message's content, and its mark where one is given. */
  update(ref: MessageRef, content: SlackContent, mark?: string): Promise<void>;
  /** Deletes a message of the bot's own. */
  remove(ref: MessageRef): Promise<void>;
  /** Posts a message that grows, in direct messages. It takes no metadata, and its links are unfurled. */
  startStream(channel: string, thread: string, markdown: string): Promise<MessageRef>;
  appendStream(ref: MessageRef, markdown: string): Promise<void>;
  /** Ends a stream with the rest of its text. The blocks stand below it. */
  stopStream(ref: MessageRef, end: StreamEnd): Promise<void>;
  /** Posts a message that only `user` sees, in a channel or in a thread with replies. */
  postEphemeral(
    channel: string,
    thread: string | undefined,
    user: string,
    content: SlackContent,
  ): Promise<void>;
  /** Posts through a command's or button's `response_url`, at most five times within 30 minutes. */
  respond(responseUrl: string, content: SlackContent, options?: ResponseOptions): Promise<void>;
  /** Returns the message with that `ts`, if it exists. */
  message(channel: string, thread: string | undefined, ts: string): Promise<SlackMessageInfo | undefined>;
  /** Reads one page of a channel's or thread's messages. */
  page(channel: string, thread: string | undefined, window: MessageWindow): Promise<MessagePage>;
  /**
   * Returns the messages after `ts`, at most 1,000: of a channel the latest, newest first; of a thread the
   * earliest, oldest first.
   */
  messagesAfter(
    channel: string,
    thread: string | undefined,
    ts: string,
  ): Promise<readonly SlackMessageInfo[]>;
  userInfo(userId: string): Promise<SlackUserInfo>;
  /** Resolves to the name of a channel, and to `undefined` for direct messages. */
  channelName(channel: string): Promise<string | undefined>;
  fileInfo(fileId: string): Promise<SlackFileInfo>;
  /** Posts files in one message. Called again with the same array, it goes on where it failed. */
  upload(channel: string, thread: string | undefined, files: readonly UploadFile[]): Promise<void>;
  openModal(triggerId: string, view: types.ModalView): Promise<void>;
  /** Sets the status of a session, and creates the session where there is none. */
  setSessionStatus(channel: string, thread: string, session: SessionState): Promise<void>;
  renameSession(channel: string, thread: string, title: string): Promise<void>;
  suggestPrompts(channel: string, prompts: { title: string; message: string }[]): Promise<void>;
  /** Resolves to the channel of a person's direct messages with the bot. */
  openDirectMessages(userId: string): Promise<string>;
  /** Replaces a person's Home tab. */
  publishHome(userId: string, view: types.HomeView): Promise<void>;
}

/** This is the state of the agent's session in a thread. */
export interface SessionState {
  readonly status: "active" | "processing";
  /** The title counts where the session is created, and has at most 200 characters. */
  readonly title?: string | undefined;
}

const pageSize = 100;
const maxPages = 10;

export interface ApiAccess {
  /** This is to be checked where Slack refuses the token. */
  readonly tokenSource: string;
  /**
   * Returns the client with the current token.
   * @throws ParleyError `platform-unauthorized` where there is none any more
   */
  client(): Promise<WebClient>;
  /** This is called with Slack's error code, or with `undefined` where Slack accepts the token. */
  used(refusal: string | undefined): void;
}

/** Returns Slack's Web API over the official client. */
export function createSlackApi(access: ApiAccess, log: Log, clock: Clock): SlackApi {
  async function call<T>(method: string, send: (client: WebClient) => Promise<T>): Promise<T> {
    const client = await access.client();
    try {
      const response = await send(client);
      access.used(undefined);
      return response;
    } catch (error) {
      const failure = toParleyError(error, method, access.tokenSource);
      const code = slackErrorCode(failure);
      if (code !== undefined && isTokenRefusal(code)) access.used(code);
      log.debug({ method, code: failure.code, ...failure.detail }, "Slack call failed");
      throw failure;
    }
  }

  async function read(
    channel: string,
    thread: string | undefined,
    window: Omit<Parameters<WebClient["conversations"]["history"]>[0], "channel">,
  ): Promise<MessagePage> {
    const { messages = [], response_metadata: metadata } =
      thread === undefined
        ? await call("conversations.history", (client) =>
            client.conversations.history({ channel, ...window }),
          )
        : await call("conversations.replies", (client) =>
            client.conversations.replies({ channel, ts: thread, ...window }),
          );
    // The package declares every field of a message as optional.
    return { messages: messages as readonly SlackMessageInfo[], cursor: metadata?.next_cursor ?? "" };
  }

  const fileInfo = async (fileId: string): Promise<SlackFileInfo> =>
    (await call("files.info", (client) => client.files.info({ file: fileId }))).file as SlackFileInfo;

  return {
    async identify() {
      const response = await call("auth.test", (client) => client.auth.test());
      return {
        teamId: String(response.team_id),
        userId: String(response.user_id),
        botId: String(response.bot_id),
        ...(response.url === undefined ? {} : { url: response.url }),
        scopes: response.response_metadata?.scopes ?? [],
      };
    },
    async post(channel, thread, { text, blocks }, mark) {
      const message: ChatPostMessageArguments = {
        channel,
        text,
        blocks,
        ...inThread(thread),
        ...toMetadata(mark),
        unfurl_links: false,
        unfurl_media: false,
      };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is no window's
      const response = await call("chat.postMessage", (client) => client.chat.postMessage(message));
      return { channel: String(response.channel), ts: String(response.ts) };
    },
    async postEphemeral(channel, thread, user, { text, blocks }) {
      await call("chat.postEphemeral", (client) =>
        client.chat.postEphemeral({ channel, user, text, blocks, ...inThread(thread) }),
      );
    },
    async update({ channel, ts }, { text, blocks }, mark) {
      await call("chat.update", (client) =>
        client.chat.update({ channel, ts, text, blocks, ...toMetadata(mark) }),
      );
    },
    async remove({ channel, ts }) {
      await call("chat.delete", (client) => client.chat.delete({ channel, ts }));
    },
    async startStream(channel, thread, markdown) {
      const response = await call("chat.startStream", (client) =>
        client.chat.startStream({ channel, thread_ts: thread, markdown_text: markdown }),
      );
      return { channel: String(response.channel), ts: String(response.ts) };
    },
    async appendStream({ channel, ts }, markdown) {
      await call("chat.appendStream", (client) =>
        client.chat.appendStream({ channel, ts, markdown_text: markdown }),
      );
    },
    async stopStream({ channel, ts }, { goesOn, markdown, blocks, mark }) {
      await call("chat.stopStream", (client) =>
        client.chat.stopStream({
          channel,
          ts,
          ...(markdown === "" ? {} : { markdown_text: markdown }),
          ...(blocks.length === 0 ? {} : { blocks }),
          ...(goesOn ? { session_status: "processing" } : {}),
          ...toMetadata(mark),
        }),
      );
    },
    respond: (responseUrl, content, options) => respondAt(responseUrl, content, clock, options),
    async message(channel, thread, ts) {
      // The method `conversations.replies` always includes the root.
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
    async messagesAfter(channel, thread, ts) {
      const messages: SlackMessageInfo[] = [];
      let cursor = "";
      for (let page = 0; page < maxPages; page++) {
        const found = await read(channel, thread, {
          oldest: ts,
          limit: pageSize,
          include_all_metadata: true,
          ...(cursor === "" ? {} : { cursor }),
        });
        messages.push(...found.messages);
        ({ cursor } = found);
        if (cursor === "") break;
      }
      return messages;
    },
    async userInfo(userId) {
      const { user = {} } = await call("users.info", (client) =>
        client.users.info({ user: userId, include_locale: true }),
      );
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
      const info = await call("conversations.info", (client) => client.conversations.info({ channel }));
      return info.channel?.name;
    },
    fileInfo,
    upload: createFileUpload({ call, info: fileInfo, clock }),
    async openModal(triggerId, view) {
      await call("views.open", (client) => client.views.open({ trigger_id: triggerId, view }));
    },
    async setSessionStatus(channel, thread, { status, title }) {
      await call("agents.sessions.setStatus", (client) =>
        client.agents.sessions.setStatus({
          channel_id: channel,
          thread_ts: thread,
          status,
          ...(title === undefined || title === "" ? {} : { title }),
        }),
      );
    },
    async renameSession(channel, thread, title) {
      await call("agents.sessions.rename", (client) =>
        client.agents.sessions.rename({ channel_id: channel, thread_ts: thread, title }),
      );
    },
    async suggestPrompts(channel, prompts) {
      // With a `thread_ts` the call returns ok and does nothing.
      await call("assistant.threads.setSuggestedPrompts", (client) =>
        client.assistant.threads.setSuggestedPrompts({ channel_id: channel, prompts }),
      );
    },
    async openDirectMessages(userId) {
      const { channel } = await call("conversations.open", (client) =>
        client.conversations.open({ users: userId }),
      );
      return String(channel?.id);
    },
    async publishHome(userId, view) {
      await call("views.publish", (client) => client.views.publish({ user_id: userId, view }));
    },
  };
}

function inThread(thread: string | undefined) {
  return thread === undefined ? {} : { thread_ts: thread };
}

function toMetadata(mark: string | undefined) {
  return mark === undefined ? {} : { metadata: { event_type: "parley_reply", event_payload: { mark } } };
}
