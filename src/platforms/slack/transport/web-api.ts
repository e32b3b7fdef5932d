import type { types } from "@slack/bolt";
import type { ChatPostMessageArguments, WebClient } from "@slack/web-api";
import type { Clock } from "../../../core/clock.ts";
import type { Log } from "../../../core/telemetry.ts";
import { createLimits, type Limits, type LimitsOptions, type Urgency } from "../../delivery/limits.ts";
import type { MessagePage, MessageRef, MessageWindow, SlackFileInfo, SlackMessageInfo } from "../address.ts";
import { isTokenRefusal, slackErrorCode, toParleyError } from "../errors.ts";
import type { Bolt } from "./durable-app.ts";
import { createFileUpload, type ResponseOptions, respondAt, type UploadFile } from "./url-requests.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";

export interface Identity {
  readonly teamId: string;
  readonly userId: string;
  readonly botId: string;
  /** The bot's user name, where Slack has just told it. */
  readonly name?: string;
  /** This is the address of the workspace, with which addresses of its messages begin. */
  readonly url?: string;
  /** The token is of a whole organisation, and names no workspace. */
  readonly isOrganisation?: true;
  /** The token has these scopes. They are empty if Slack did not list them. */
  readonly scopes: readonly string[];
}

export interface SlackUserInfo {
  /** The display name, or else the next best one. */
  readonly name: string;
  /** All names, with the user name. */
  readonly names: readonly string[];
  readonly teamId: string | undefined;
  /** In an organisation of several workspaces these are all that the person is in. */
  readonly teams: readonly string[];
  readonly isAdmin: boolean;
  /** The person is from another workspace, and in no channel that the app sees. */
  readonly isStranger: boolean;
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

/** When a message is sent, by default like a notice, and the mark by which it is found; nobody sees that. */
interface ShowOptions extends CallTiming {
  readonly mark?: string | undefined;
}

interface SessionState {
  readonly status: "active" | "processing";
  /** The title counts where the session is created, and has at most 200 characters. */
  readonly title?: string | undefined;
}

const pageSize = 100;
const maxPages = 10;

export interface TeamToken {
  /** Errors name this source of the token: the name of a setting, or "the installation of the app". */
  readonly source: string;
  /**
   * Returns the current token.
   * @throws ParleyError `platform-unauthorized` where there is none any more
   */
  current(): Promise<string>;
  /** Notes Slack's error code where it has refused the current token, else `undefined`. */
  used(refusal: string | undefined): void;
}

type Call = ReturnType<typeof createCall>;

/** Returns what calls the Web API with the current token. Failures are ParleyErrors; nothing is retried. */
export function createCall(bolt: Bolt, token: TeamToken, log: Log) {
  let made: { readonly token: string; readonly client: WebClient } | undefined;
  return async <T>(method: string, send: (client: WebClient) => Promise<T>): Promise<T> => {
    const current = await token.current();
    if (made?.token !== current) made = { token: current, client: bolt.createClient(current) };
    try {
      const response = await send(made.client);
      token.used(undefined);
      return response;
    } catch (error) {
      const failure = toParleyError(error, method, token.source);
      const code = slackErrorCode(failure);
      if (code !== undefined && isTokenRefusal(code)) token.used(code);
      log.debug({ method, code: failure.code, ...failure.detail }, "Slack call failed");
      throw failure;
    }
  };
}

export async function identify(call: Call): Promise<Identity> {
  const response = await call("auth.test", (client) => client.auth.test());
  return {
    teamId: String(response.team_id),
    userId: String(response.user_id),
    botId: String(response.bot_id),
    ...(response.user === undefined ? {} : { name: response.user }),
    ...(response.url === undefined ? {} : { url: response.url }),
    ...(response.is_enterprise_install === true ? { isOrganisation: true } : {}),
    scopes: response.response_metadata?.scopes ?? [],
  };
}

export type SlackApi = ReturnType<typeof createSlackApi>;

/**
 * Returns the part of the Web API that Parley uses. What shows something waits for room under the limits of
 * its method.
 */
export function createSlackApi(call: Call, limits: Limits, clock: Clock) {
  /** Makes a call that shows something, when its limits have room. */
  function show<T>(
    method: string,
    { urgency, withinMs, signal }: CallTiming,
    send: (client: WebClient) => Promise<T>,
    its: readonly string[] = [method],
  ): Promise<T> {
    const deadline = clock.monotonic() + withinMs;
    return limits.send({ lanes: its, urgency, method, deadline, signal }, async () => {
      try {
        return await call(method, send);
      } catch (error) {
        throw its.length > 1 ? withLane(error) : error;
      }
    });
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

  /**
   * Returns the messages after `ts`, at most 1,000: of a channel the latest, newest first; of a thread the
   * earliest, oldest first.
   */
  async function messagesAfter(
    channel: string,
    thread: string | undefined,
    ts: string,
  ): Promise<readonly SlackMessageInfo[]> {
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
  }

  const fileInfo = async (fileId: string): Promise<SlackFileInfo> =>
    (await call("files.info", (client) => client.files.info({ file: fileId }))).file as SlackFileInfo;
  const uploadFiles = createFileUpload({ call, info: fileInfo, messagesAfter, clock });

  return {
    /**
     * Posts a message. A user id as `channel` means that person's direct messages. Each post has a mark, so
     * that a message of the bot without one is a stream that was not ended.
     */
    async post(
      channel: string,
      thread: string | undefined,
      { text, blocks }: SlackContent,
      { mark = "notice", ...timing }: ShowOptions = noticeTiming,
    ): Promise<MessageRef> {
      const message: ChatPostMessageArguments = {
        channel,
        text,
        blocks,
        ...inThread(thread),
        ...toMetadata(mark),
        unfurl_links: false,
        unfurl_media: false,
      };
      const response = await show(
        lanes.post,
        timing,
        // oxlint-disable-next-line unicorn/require-post-message-target-origin -- it is no window's
        (client) => client.chat.postMessage(message),
        lanes.posts(channel),
      );
      return { channel: String(response.channel), ts: String(response.ts) };
    },
    /** Posts a message that only `user` sees, in a channel or in a thread with replies. */
    async postEphemeral(
      channel: string,
      thread: string | undefined,
      user: string,
      { text, blocks }: SlackContent,
    ): Promise<void> {
      await show(lanes.ephemeral, noticeTiming, (client) =>
        client.chat.postEphemeral({ channel, user, text, blocks, ...inThread(thread) }),
      );
    },
    /** Replaces a message's content, and its mark where one is given. */
    async update(
      { channel, ts }: MessageRef,
      { text, blocks }: SlackContent,
      { mark, ...timing }: ShowOptions,
    ): Promise<void> {
      await show(lanes.update, timing, (client) =>
        client.chat.update({ channel, ts, text, blocks, ...toMetadata(mark) }),
      );
    },
    async remove({ channel, ts }: MessageRef, timing: CallTiming): Promise<void> {
      await show(lanes.remove, timing, (client) => client.chat.delete({ channel, ts }));
    },
    /** Posts a message that grows, in direct messages. It takes no metadata, and its links are unfurled. */
    async startStream(
      channel: string,
      thread: string,
      markdown: string,
      timing: CallTiming,
    ): Promise<MessageRef> {
      const response = await show(lanes.startStream, timing, (client) =>
        client.chat.startStream({ channel, thread_ts: thread, markdown_text: markdown }),
      );
      return { channel: String(response.channel), ts: String(response.ts) };
    },
    async appendStream({ channel, ts }: MessageRef, markdown: string, timing: CallTiming): Promise<void> {
      await show(lanes.appendStream, timing, (client) =>
        client.chat.appendStream({ channel, ts, markdown_text: markdown }),
      );
    },
    /** Ends a stream with the rest of its text. The blocks stand below it. */
    async stopStream(
      { channel, ts }: MessageRef,
      { goesOn, markdown, blocks, mark }: StreamEnd,
      timing: CallTiming,
    ): Promise<void> {
      await show(lanes.stopStream, timing, (client) =>
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
    /** Posts through a command's or button's `response_url`, at most five times within 30 minutes. */
    respond: (responseUrl: string, content: SlackContent, options?: ResponseOptions): Promise<void> =>
      respondAt(responseUrl, content, clock, options),
    async message(
      channel: string,
      thread: string | undefined,
      ts: string,
    ): Promise<SlackMessageInfo | undefined> {
      // The method `conversations.replies` always includes the root.
      const { messages } = await read(channel, thread, { oldest: ts, latest: ts, inclusive: true, limit: 5 });
      return messages.find((message) => message.ts === ts);
    },
    page: (
      channel: string,
      thread: string | undefined,
      { oldest, latest, limit, cursor }: MessageWindow,
    ): Promise<MessagePage> =>
      read(channel, thread, {
        limit,
        ...(oldest === undefined ? {} : { oldest }),
        ...(latest === undefined ? {} : { latest }),
        ...(cursor === "" ? {} : { cursor }),
      }),
    messagesAfter,
    async userInfo(userId: string): Promise<SlackUserInfo> {
      const { user = {} } = await call("users.info", (client) =>
        client.users.info({ user: userId, include_locale: true }),
      );
      const { display_name: shown, real_name: real, first_name: first } = user.profile ?? {};
      const names = [shown, real, user.real_name, user.name, first].filter(
        (name): name is string => name !== undefined && name !== "",
      );
      return {
        name: names[0] ?? userId,
        names: [...new Set(names)],
        teamId: user.team_id,
        teams: user.enterprise_user?.teams ?? [],
        isAdmin: user.is_admin === true || user.is_owner === true || user.is_primary_owner === true,
        isStranger: user.is_stranger === true,
        ...(user.locale === undefined ? {} : { locale: user.locale }),
      };
    },
    /** Resolves to the name of a channel, and to `undefined` for direct messages. */
    async channelName(channel: string): Promise<string | undefined> {
      const info = await call("conversations.info", (client) => client.conversations.info({ channel }));
      return info.channel?.name;
    },
    /** Resolves to the name of a public channel, which everybody may know. */
    async publicChannelName(channel: string): Promise<string | undefined> {
      const info = await call("conversations.info", (client) => client.conversations.info({ channel }));
      return info.channel?.is_private === true ? undefined : info.channel?.name;
    },
    fileInfo,
    /** Posts files in one message. Called again with the same array, it goes on where it failed. */
    async upload(channel: string, thread: string | undefined, files: readonly UploadFile[]): Promise<void> {
      const deadline = clock.monotonic() + noticeTiming.withinMs;
      const method = lanes.uploads;
      await limits.send({ lanes: [method], urgency: "final", method, deadline }, () =>
        uploadFiles(channel, thread, files),
      );
    },
    async openModal(triggerId: string, view: types.ModalView): Promise<void> {
      await call("views.open", (client) => client.views.open({ trigger_id: triggerId, view }));
    },
    /** Sets the status of a session, and creates the session where there is none. */
    async setSessionStatus(
      channel: string,
      thread: string,
      { status, title }: SessionState,
      timing: CallTiming = noticeTiming,
    ): Promise<void> {
      await show(lanes.sessions, timing, (client) =>
        client.agents.sessions.setStatus({
          channel_id: channel,
          thread_ts: thread,
          status,
          ...(title === undefined || title === "" ? {} : { title }),
        }),
      );
    },
    async suggestPrompts(channel: string, prompts: { title: string; message: string }[]): Promise<void> {
      // With a `thread_ts` the call returns ok and does nothing.
      await call("assistant.threads.setSuggestedPrompts", (client) =>
        client.assistant.threads.setSuggestedPrompts({ channel_id: channel, prompts }),
      );
    },
    async publishHome(userId: string, view: types.HomeView): Promise<void> {
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

export interface CallTiming {
  readonly urgency: Urgency;
  /** The call fails rather than wait longer than this for room. */
  readonly withinMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Calls count against the limits with these names. */
export const lanes = {
  post: "chat.postMessage",
  posts: (channel: string): readonly string[] => [`${lanes.post} ${channel}`, lanes.post],
  update: "chat.update",
  remove: "chat.delete",
  startStream: "chat.startStream",
  appendStream: "chat.appendStream",
  stopStream: "chat.stopStream",
  sessions: "agents.sessions.setStatus",
  ephemeral: "chat.postEphemeral",
  uploads: "files.completeUploadExternal",
} as const;

/** These windows are a little longer than Slack's, since calls take different times to arrive there. */
const [minuteMs, channelMs] = [61_000, 5300];
/** Refusals, notices, files and private answers come before all but final texts that wait longer. */
export const noticeTiming: CallTiming = { urgency: "final", withinMs: minuteMs };
/**
 * Slack takes about one post a second in a channel, "several hundred" a minute in a workspace, and at least
 * so many calls in tiers 2, 3 and 4. Streams are started less often, so that each can be stopped.
 * @see https://docs.slack.dev/apis/web-api/rate-limits lists the tiers.
 */
const perMinute: Readonly<Record<string, number>> = {
  [lanes.post]: 300,
  [lanes.startStream]: 16,
  [lanes.stopStream]: 20,
  [lanes.update]: 50,
  [lanes.sessions]: 50,
  [lanes.remove]: 50,
  [lanes.appendStream]: 100,
  [lanes.uploads]: 100,
  [lanes.ephemeral]: 100,
};
/** A longer Retry-After for a post comes from the limit of the workspace. */
const maxChannelWaitMs = 5000;

/** Creates the limits of the calls in one workspace. */
export function createWorkspaceLimits(options: Pick<LimitsOptions, "clock" | "meter">) {
  return createLimits({
    ...options,
    platform: "slack",
    limitOf(lane) {
      if (lane.startsWith(`${lanes.post} `)) return { perWindow: 5, windowMs: channelMs };
      const perWindow = perMinute[lane];
      return perWindow === undefined ? undefined : { perWindow, windowMs: minuteMs };
    },
  });
}

/** Names the limit in the error of a post, because Slack does not say which of its limits was reached. */
function withLane(error: unknown): unknown {
  if (!isParleyError(error) || (error.retryAfterMs ?? 0) <= maxChannelWaitMs) return error;
  const { code, message, retryAfterMs, detail, cause } = error;
  return new ParleyError(code, message, {
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    detail: { ...detail, lane: lanes.post },
    cause,
  });
}

/** Returns whether a call had no effect: there was no room for it, or Slack refused it as too many. */
export function isLimited(error: unknown): error is ParleyError & { readonly retryAfterMs: number } {
  return isParleyError(error) && error.retryAfterMs !== undefined;
}
