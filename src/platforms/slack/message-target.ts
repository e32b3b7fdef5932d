import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { ReplyFile } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Urgency } from "../delivery/delivery-lane.ts";
import type { DeliveryScheduler } from "../delivery/delivery-scheduler.ts";
import type { EditTarget, MessageContent, WorkSign } from "../delivery/edit-target.ts";
import { isTransient } from "../delivery/platform-retry.ts";
import { parseMessageRef, type SlackAddress } from "./address.ts";
import { isLimited, lanes, type CallTiming, type DeliveryCalls } from "./delivery-calls.ts";
import { isNotMember } from "./errors.ts";
import { createGrowingMessages } from "./growing-messages.ts";
import { escapedBytes } from "./markdown.ts";
import { toPlainSection } from "./message-blocks.ts";
import type { StreamSupport } from "./native-stream.ts";
import { createPostedMessages } from "./posted-messages.ts";
import type { ReplacedMessages } from "./replaced-messages.ts";
import { createReplyMessages, editWithinMs, postWithinMs, toKey } from "./reply-messages.ts";
import { areShared } from "./shared-files.ts";
import type { ReplySession, Sessions } from "./sessions.ts";
import { createStatusLine, type StatusLine } from "./status-line.ts";
import type { Identity, MessageRef, SlackApi } from "./web-api.ts";
import { translate } from "../../words/translate.ts";

/** `chat.update` accepts 4,000 bytes of text; this leaves a margin. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;

/** What {@link createMessageTarget} needs. */
export interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly calls: DeliveryCalls;
  readonly scheduler: DeliveryScheduler;
  readonly streams: StreamSupport;
  readonly replaced: ReplacedMessages;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly address: SlackAddress;
  /** Which of these messages show other open turns of the conversation. */
  readonly otherTurnsShow: (refs: readonly MessageRef[]) => Promise<readonly MessageRef[]>;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  /** A stream is ended after so long, and its message edited from then on. */
  readonly streamLifeMs: number;
  readonly sessions: Sessions;
  /** Of the session in the thread, where this reply creates it. */
  readonly title?: string | undefined;
  /** Called once, when the reply has ended or is abandoned. */
  readonly onClose: () => void;
  /** Called after each post; the reply's first message can become a thread's root. */
  readonly onPost: (ref: MessageRef) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** @see {@link createMessageTarget} */
export interface MessageTarget extends EditTarget {
  /** The reply's address is saved: messages that it does not contain any more are removed. Never rejects. */
  saved(): Promise<void>;
}

/**
 * Shows a reply in messages of a channel, thread or direct message, in one of three ways, as Slack's limits allow when its
 * first text is there: a native stream; a post that is edited; or a status line until the whole text is one post. Where an
 * edit with the final text would have to wait, the text is posted, and the message with its beginning removed.
 */
export function createMessageTarget(options: MessageTargetOptions): MessageTarget {
  const { api, calls, scheduler, replaced, identity, address, isResumed, onPost, clock, log } = options;
  const { channel, thread } = address;
  const found = createPostedMessages(api, address, {
    botUserId: identity.userId,
    otherTurnsShow: options.otherTurnsShow,
  });
  const status = createStatus(options);
  const session = openSession(options);
  const onPosted = (): void => status?.posted();
  const messages = createReplyMessages({ calls, address, found, isResumed, onPosted, clock, log });
  const { streams, streamLifeMs } = options;
  const growing = createGrowingMessages({
    calls,
    scheduler,
    streams,
    messages,
    address,
    teamId: identity.teamId,
    streamLifeMs,
    onPosted,
    clock,
    log,
  });
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

  async function post(content: MessageContent, signal: AbortSignal, urgency: Urgency): Promise<MessageRef> {
    const known = await messages.findNext();
    if (known !== undefined) {
      await messages.update(known, content, { urgency, withinMs: editWithinMs, signal });
      return known;
    }
    return isEnd(content) || urgency === "final"
      ? await messages.post(content, { urgency: "final", withinMs: postWithinMs, signal })
      : await growing.post(content, signal);
  }

  /** Shows the final text of a message. Resolves to the message that shows it. */
  async function finish(
    ref: MessageRef,
    content: MessageContent,
    timing: CallTiming,
    confirm: () => Promise<void>,
  ): Promise<MessageRef> {
    const { stream, reservation } = messages.at(ref);
    try {
      if (stream?.isOpen() === true && (await stream.finish(content, timing))) {
        messages.at(ref).key = toKey(content);
        return ref;
      }
      await messages.update(ref, content, { ...timing, reservation });
      reservation?.release();
      return ref;
    } catch (error) {
      if (timing.urgency !== "final" || !isBetterPosted(error)) throw error;
      // The edit may have waited for long: what nobody's address names would stay beside the answer of the other process.
      await confirm().catch((cause: unknown) => {
        if (isParleyError(cause, "stopping")) throw cause;
      });
      log.info({ err: error }, "message not edited now: posting its text anew");
      const posted = await messages.post(content, { ...timing, withinMs: postWithinMs }, ref);
      messages.replace(ref, posted);
      return posted;
    }
  }

  /** Whether a text that could not be edited is posted: people have deleted the message, or that is faster. */
  function isBetterPosted(error: unknown): boolean {
    if (!isLimited(error)) return isParleyError(error, "platform-rejected") && !isTransient(error);
    // The root of a thread stays: the thread's conversation is named after it.
    return thread !== undefined && scheduler.waitMs(lanes.posts(channel), "final") < error.retryAfterMs;
  }

  /** Asks a command's caller to invite the bot, through the `response_url`: it cannot post in the channel. */
  async function requestInvitation(error: unknown): Promise<void> {
    if (!isNotMember(error)) return;
    if (address.responseUrl === undefined || isInvitationRequested) return;
    isInvitationRequested = true;
    const text = translate("slack.not-in-channel");
    await api.respond(address.responseUrl, { text, blocks: [toPlainSection(text)] });
  }

  return {
    maxLength: maxMessageBytes,
    lengthOf: escapedBytes,
    maxMessages,
    minEditIntervalMs,
    ...(status === undefined ? {} : { sign: toSign(status, session) }),
    async post(content, signal, urgency): Promise<Json> {
      try {
        const ref = await post(content, signal, urgency);
        messages.refs.push(ref);
        onPost(ref);
        return toJson(ref);
      } catch (error) {
        await requestInvitation(error);
        throw error;
      }
    },
    async edit(given, content, signal, urgency, confirm): Promise<Json> {
      const ref = await messages.current(parseMessageRef(given));
      // The last preview and the final content are often equal: an edit would only count against the limit.
      if (messages.at(ref).key === toKey(content)) return toJson(ref);
      if (isEnd(content))
        return toJson(await finish(ref, content, { urgency, withinMs: editWithinMs, signal }, confirm));
      await growing.extend(ref, content, { urgency, signal });
      return toJson(ref);
    },
    async remove(given) {
      const ref = parseMessageRef(given);
      const index = messages.refs.findIndex(({ ts }) => ts === ref.ts);
      if (index !== -1) messages.refs.splice(index, 1);
      await replaced.remove([ref]);
    },
    async upload(files) {
      // An earlier process may have posted them. What this one has begun, the upload itself goes on with.
      if (isResumed && !begun.has(files) && (await wereShared(files))) return [];
      begun.add(files);
      await api.upload(channel, thread, files);
      return [];
    },
    roomInMs: (kind) => growing.roomInMs(kind),
    saved: () => replaced.remove(messages.takeReplaced()),
    close(isAbandoned) {
      session?.end(isAbandoned);
      growing.close();
      options.onClose();
    },
  };
}

/** Where nothing can be shown below a thread, a command has its placeholder. */
function createStatus({ calls, address, clock, log }: MessageTargetOptions): StatusLine | undefined {
  const { channel, thread = messageOf(address) } = address;
  return thread === undefined ? undefined : createStatusLine({ calls, channel, thread, clock, log });
}

/** Slack's own Stop is shown in threads; what stands in the channel itself has a button. */
function openSession({
  sessions,
  address,
  title,
  isResumed,
}: MessageTargetOptions): ReplySession | undefined {
  const { channel, thread } = address;
  return thread === undefined ? undefined : sessions.open({ channel, thread, title, isResumed });
}

function toSign(status: StatusLine, session: ReplySession | undefined): WorkSign {
  return {
    showsWords: status.showsWords,
    show(words) {
      session?.begin();
      status.show(words);
    },
    clear: () => status.clear(),
  };
}

/** `ts` of the message that is answered in the channel itself; a command has none. */
function messageOf({ key }: SlackAddress): string | undefined {
  return /:(\d{10}\.\d{6})$/.exec(key)?.[1];
}

const isEnd = ({ state }: MessageContent): boolean => state === "finished" || state === "failed";

const toJson = ({ channel, ts }: MessageRef): Json => ({ channel, ts });
