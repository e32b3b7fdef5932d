import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Json } from "../../../core/events.ts";
import type { ReplyFile } from "../../../core/reply.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import type { Limits } from "../../delivery/limits.ts";
import type { CallHow, EditTarget, MessageContent } from "../../delivery/message-plan.ts";
import { isTransient } from "../../delivery/receive-patiently.ts";
import { parseMessageRef, type SlackAddress, isDirectMessages, type MessageRef } from "../address.ts";
import { isLimited, lanes, type CallTiming } from "../transport/lanes.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { type Feature, isNotMember } from "../errors.ts";
import { areShared } from "../intake/files.ts";
import { escapedBytes, escapeMarkdown } from "./escape-markdown.ts";
import { bytesOfSource, toPlainContent } from "./message-blocks.ts";
import { createNativeStream, streamBeginning } from "./native-stream.ts";
import { createMessagesOfReply, editWithinMs, postWithinMs, toKey } from "./posted-messages.ts";
import type { createSessions } from "./sessions.ts";

/** The method `chat.update` accepts 4,000 bytes of text; this leaves a margin. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;

interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly limits: Limits;
  readonly streams: Feature;
  /** Removes messages that no saved address contains any more. It never rejects. */
  readonly removeMessages: (refs: readonly MessageRef[]) => Promise<void>;
  readonly identity: Pick<Identity, "userId">;
  readonly address: SlackAddress;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  readonly sessions: ReturnType<typeof createSessions>;
  /** The session in the thread gets this title where the reply creates it. */
  readonly title?: string | undefined;
  /** This is called once, when the reply has ended or is abandoned. */
  readonly onClose: () => void;
  /** This is called after each post, since the reply's first message can become a thread's root. */
  readonly onPost: (ref: MessageRef) => void;
  readonly clock: Clock;
  readonly log: Log;
}

interface MessageTarget extends EditTarget {
  /** Removes messages that the reply's saved address does not contain any more. It never rejects. */
  saved(): Promise<void>;
}

/**
 * Shows a reply in messages of a channel, thread or direct message: as a native stream in direct messages,
 * and as posts that are edited elsewhere, and where Slack has no streams. Growing text is left out where
 * Slack's limits have no room for it. Where an edit with the final text would wait longer than half a second,
 * the text is posted, and the message with its beginning removed, except one that may be a thread's root.
 */
export function createMessageTarget(options: MessageTargetOptions): MessageTarget {
  const { api, limits, removeMessages, identity, address, isResumed, onPost, log } = options;
  const { channel, thread } = address;
  // What stands in the channel itself has a placeholder.
  const session =
    thread === undefined
      ? undefined
      : options.sessions.open({ channel, thread, title: options.title, isResumed });
  const messages = createMessagesOfReply(options);
  const growing = createGrowingMessages({ ...options, messages });
  let isInvitationRequested = false;
  const begun = new WeakSet<readonly ReplyFile[]>();

  async function wereShared(files: readonly ReplyFile[]): Promise<boolean> {
    try {
      return await areShared(api, address, files, identity.userId);
    } catch (error) {
      if (isTransient(error) || isParleyError(error, "platform-unauthorized")) throw error;
      log.info({ err: error }, "files of a reply not looked up");
      return false;
    }
  }

  async function post(content: MessageContent, how: CallHow): Promise<MessageRef> {
    const { urgency } = how;
    const signal = toSignal(how);
    const known = await messages.findNext();
    if (known !== undefined) {
      await messages.update(known, content, { urgency, withinMs: editWithinMs, signal });
      return known;
    }
    if (!isEnd(content) && urgency !== "final") return await growing.post(content, { urgency, signal });
    return await messages.post(content, { urgency: "final", withinMs: postWithinMs, signal });
  }

  /** Shows the final text of a message, and resolves to the message that shows it. */
  async function finish(
    ref: MessageRef,
    content: MessageContent,
    timing: CallTiming,
    confirm: () => Promise<void>,
  ): Promise<MessageRef> {
    const { stream } = messages.at(ref);
    try {
      if (stream?.isOpen() === true && (await stream.finish(content, timing))) {
        messages.at(ref).key = toKey(content);
        return ref;
      }
      await messages.update(ref, content, timing);
      return ref;
    } catch (error) {
      if (timing.urgency !== "final" || !isBetterPosted(error)) throw error;
      // The edit may have waited for long, and a post that nobody's address names would stay beside the
      // answer of another process.
      await confirm().catch((cause: unknown) => {
        if (isParleyError(cause, "stopping")) throw cause;
      });
      log.info({ err: error }, "message not edited now: posting its text anew");
      const posted = await messages.post(content, { ...timing, withinMs: postWithinMs }, ref);
      messages.replace(ref, posted);
      return posted;
    }
  }

  /** Returns whether a text that could not be edited is posted: its message is gone, or a post is faster. */
  function isBetterPosted(error: unknown): boolean {
    if (!isLimited(error)) return isParleyError(error, "platform-rejected") && !isTransient(error);
    // The root of a thread stays, because the thread's conversation is named after it.
    return thread !== undefined && limits.waitMs(lanes.posts(channel), "final") < error.retryAfterMs;
  }

  /** Asks a command's caller to invite the bot, since the bot cannot post in the channel. */
  async function requestInvitation(error: unknown): Promise<void> {
    if (!isNotMember(error)) return;
    if (address.responseUrl === undefined || isInvitationRequested) return;
    isInvitationRequested = true;
    await api.respond(address.responseUrl, toPlainContent(translate("slack.not-in-channel")));
  }

  return {
    maxLength: maxMessageBytes,
    lengthOf: escapedBytes,
    lengthOfSource: bytesOfSource,
    maxMessages,
    minEditIntervalMs,
    ...(session === undefined ? {} : { sign: { show: () => session.begin(), clear: () => undefined } }),
    async post(content, how): Promise<Json> {
      try {
        const ref = await post(content, how);
        messages.refs.push(ref);
        onPost(ref);
        return toJson(ref);
      } catch (error) {
        await requestInvitation(error);
        throw error;
      }
    },
    async edit(given, content, how, confirm): Promise<Json> {
      const ref = await messages.current(parseMessageRef(given));
      // The last preview and the final content are often equal, and an edit would only count against the
      // limit.
      if (messages.at(ref).key === toKey(content)) return toJson(ref);
      const { urgency } = how;
      const signal = toSignal(how);
      if (isEnd(content))
        return toJson(await finish(ref, content, { urgency, withinMs: editWithinMs, signal }, confirm));
      await growing.extend(ref, content, { urgency, signal });
      return toJson(ref);
    },
    async findNext() {
      const ref = await messages.findNext();
      if (ref === undefined) return undefined;
      messages.refs.push(ref);
      return toJson(ref);
    },
    async remove(given) {
      const ref = parseMessageRef(given);
      const index = messages.refs.findIndex(({ ts }) => ts === ref.ts);
      if (index !== -1) messages.refs.splice(index, 1);
      await removeMessages([ref]);
    },
    async upload(files) {
      // An earlier process may have posted the files. An upload that this process has begun goes on by
      // itself.
      if (isResumed && !begun.has(files) && (await wereShared(files))) return [];
      begun.add(files);
      await api.upload(channel, thread, files);
      return [];
    },
    roomInMs: (urgency) => growing.roomInMs(urgency),
    saved: () => removeMessages(messages.takeReplaced()),
    close(isAbandoned) {
      session?.end(isAbandoned);
      growing.close();
      options.onClose();
    },
  };
}

const isEnd = ({ state }: MessageContent): boolean => state === "finished" || state === "failed";

const toJson = ({ channel, ts }: MessageRef): Json => ({ channel, ts });

function toSignal({ signal, leaves }: CallHow): AbortSignal {
  return leaves === undefined ? signal : AbortSignal.any([signal, leaves]);
}

/** Growing text that has to wait longer is outdated. */
const growthWithinMs = 1000;

interface GrowingMessagesOptions extends Pick<
  MessageTargetOptions,
  "api" | "limits" | "streams" | "address" | "clock" | "log"
> {
  readonly messages: ReturnType<typeof createMessagesOfReply>;
}

/**
 * Shows text as native streams, or as posts that are edited. In a channel only the person who is answered
 * would see a stream grow, so that messages there are edited.
 */
function createGrowingMessages(options: GrowingMessagesOptions) {
  const { api, limits, streams, messages, address, clock, log } = options;
  const { channel, thread } = address;
  /** The reply shares the room for growth in this lane. */
  let joined: { readonly lane: string; readonly leave: () => void } | undefined;

  /** Makes the reply share the room of that lane, and of no other. */
  function join(lane: string): void {
    if (joined?.lane === lane) return;
    joined?.leave();
    joined = { lane, leave: limits.join(lane) };
  }

  const streamThread = (): string | undefined =>
    isDirectMessages(channel) && streams.isOn() ? thread : undefined;

  /** Starts a stream. The result is `undefined` where there is none, or no room for one. */
  async function startStream(text: string, timing: CallTiming): Promise<MessageRef | undefined> {
    const root = streamThread();
    const started = streamBeginning(text);
    if (root === undefined || started === "") return undefined;
    const index = messages.refs.length;
    const mark = messages.markOf(index);
    try {
      const ref = await api.startStream(channel, root, escapeMarkdown(started), { ...timing, withinMs: 0 });
      const stream = createNativeStream({ api, ref, started, mark, clock, log });
      messages.add(ref, { index, stream, lastGrownAt: clock.monotonic() });
      join(lanes.appendStream);
      return ref;
    } catch (error) {
      if (isLimited(error) || streams.note(error)) return undefined;
      messages.failed(error);
      throw error;
    }
  }

  return {
    /**
     * Posts the first text of a message: as a stream where there can be one, else as a post.
     * @throws ParleyError `platform-unreachable` with `retryAfterMs` where there is no room now
     */
    async post(content: MessageContent, given: Omit<CallTiming, "withinMs">): Promise<MessageRef> {
      const timing: CallTiming = { ...given, withinMs: growthWithinMs };
      const stream = await startStream(content.text, timing);
      if (stream !== undefined) return stream;
      // A command's placeholder is the only sign of work that it has.
      const withinMs = content.text === "" ? postWithinMs : growthWithinMs;
      const ref = await messages.post(content, { ...given, withinMs });
      join(lanes.update);
      return ref;
    },
    /** Shows more text. */
    async extend(
      ref: MessageRef,
      content: MessageContent,
      given: Omit<CallTiming, "withinMs">,
    ): Promise<void> {
      const timing: CallTiming = { ...given, withinMs: growthWithinMs };
      const its = messages.at(ref);
      const { stream } = its;
      its.lastGrownAt = clock.monotonic();
      if (stream?.isOpen() === true) {
        if (stream.takes(content.text)) {
          await stream.append(content.text, timing);
          if (stream.isOpen()) return;
        } else await stream.stop({ ...timing, urgency: "final", withinMs: editWithinMs });
      }
      join(lanes.update);
      await messages.update(ref, content, timing);
    },
    /** Returns what {@link EditTarget.roomInMs} says. */
    roomInMs(urgency: "first" | "growth"): number {
      const last = messages.refs.at(-1);
      if (last === undefined) {
        const posts = limits.waitMs(lanes.posts(channel), urgency);
        return streamThread() === undefined
          ? posts
          : Math.min(posts, limits.waitMs([lanes.startStream], urgency));
      }
      const { stream, lastGrownAt } = messages.at(last);
      const lane = stream?.isOpen() === true ? lanes.appendStream : lanes.update;
      const roomMs = limits.waitMs([lane], urgency);
      if (urgency === "first") return roomMs;
      return Math.max(roomMs, lastGrownAt + limits.intervalMs(lane) - clock.monotonic());
    },
    /** Sends nothing more, and leaves the room for growth to others. */
    close(): void {
      for (const { stream } of messages.all()) stream?.close();
      joined?.leave();
    },
  };
}
