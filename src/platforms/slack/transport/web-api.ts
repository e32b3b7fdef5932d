import type { types } from "@slack/bolt";
import type { ChatPostMessageArguments, WebClient } from "@slack/web-api";
import type { Clock } from "../../../core/clock.ts";
import type { Limits } from "../../delivery/limits.ts";
import type { MessagePage, MessageRef, MessageWindow, SlackFileInfo, SlackMessageInfo } from "../address.ts";
import type { Call } from "./call.ts";
import { lanes, noticeTiming, withLane, type CallTiming } from "./lanes.ts";
import { createFileUpload, type ResponseOptions, respondAt, type UploadFile } from "./url-requests.ts";

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

export type SlackApi = ReturnType<typeof createSlackApi>;

/**
 * Returns the part of the Web API that Parley uses. What shows something waits for room under the limits of
 * its method.
 */
export function createSlackApi(call: Call, limits: Limits, clock: Clock) {
  const show = createShowing(call, limits, clock);
  const reads = createReads(call);
  const infos = createInfos(call);
  const uploadFiles = createFileUpload({
    call,
    info: infos.fileInfo,
    messagesAfter: reads.messagesAfter,
    clock,
  });
  return {
    ...createPosts(show),
    ...createStreams(show),
    ...createViews(call, show),
    ...reads,
    ...infos,
    /** Posts through a command's or button's `response_url`, at most five times within 30 minutes. */
    respond: (responseUrl: string, content: SlackContent, options?: ResponseOptions): Promise<void> =>
      respondAt(responseUrl, content, clock, options),
    /** Posts files in one message. Called again with the same array, it goes on where it failed. */
    async upload(channel: string, thread: string | undefined, files: readonly UploadFile[]): Promise<void> {
      const deadline = clock.monotonic() + noticeTiming.withinMs;
      const method = lanes.uploads;
      await limits.send({ lanes: [method], urgency: "final", method, deadline }, () =>
        uploadFiles(channel, thread, files),
      );
    },
  };
}

type Show = ReturnType<typeof createShowing>;

/** Returns what makes a call that shows something, when its limits have room. */
function createShowing(call: Call, limits: Limits, clock: Clock) {
  return <T>(
    method: string,
    { urgency, withinMs, signal }: CallTiming,
    send: (client: WebClient) => Promise<T>,
    its: readonly string[] = [method],
  ): Promise<T> => {
    const deadline = clock.monotonic() + withinMs;
    return limits.send({ lanes: its, urgency, method, deadline, signal }, async () => {
      try {
        return await call(method, send);
      } catch (error) {
        throw its.length > 1 ? withLane(error) : error;
      }
    });
  };
}

function createPosts(show: Show) {
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
  };
}

/** Returns the calls about messages that grow, which Slack has in direct messages. */
function createStreams(show: Show) {
  return {
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
  };
}

/** Returns what reads messages. */
function createReads(call: Call) {
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

  return {
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
  };
}

/** Returns what tells about people, channels and files. */
function createInfos(call: Call) {
  return {
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
    /** Resolves to the public and private channels that the bot is in, at most 200. */
    async ownChannels(): Promise<readonly string[]> {
      const { channels = [] } = await call("users.conversations", (client) =>
        client.users.conversations({
          types: "public_channel,private_channel",
          exclude_archived: true,
          limit: 200,
        }),
      );
      return channels.flatMap(({ id }) => id ?? []);
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
    fileInfo: async (fileId: string): Promise<SlackFileInfo> =>
      (await call("files.info", (client) => client.files.info({ file: fileId }))).file as SlackFileInfo,
  };
}

/** Returns what opens forms, shows the Home tab, and changes what stands around messages. */
function createViews(call: Call, show: Show) {
  return {
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
