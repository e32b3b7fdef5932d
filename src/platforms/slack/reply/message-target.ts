import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Json } from "../../../core/events.ts";
import type { ReplyFile } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { translate } from "../../../words/translate.ts";
import type { DeliveryScheduler, Reservation, Urgency } from "../../delivery/delivery-scheduler.ts";
import type { EditTarget, MessageContent } from "../../delivery/message-plan.ts";
import { isTransient } from "../../delivery/receive-patiently.ts";
import { parseMessageRef, type SlackAddress, isDirectMessages, type MessageRef } from "../address.ts";
import {
  isLimited,
  lanes,
  reserveNow,
  type CallTiming,
  type Identity,
  type SlackApi,
} from "../transport/web-api.ts";
import { type Feature, isNotMember } from "../errors.ts";
import { areShared } from "../intake/files.ts";
import { escapedBytes, escapeMarkdown } from "./escape-markdown.ts";
import { bytesOfSource, toPlainContent } from "./message-blocks.ts";
import { createNativeStream, streamBeginning } from "./native-stream.ts";
import { createReplyMessages, editWithinMs, postWithinMs, toKey } from "./reply-messages.ts";
import type { createSessions } from "./sessions.ts";

/** The method `chat.update` accepts 4,000 bytes of text; this leaves a margin. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;

interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly scheduler: DeliveryScheduler;
  readonly streams: Feature;
  /** Removes messages that no saved address contains any more. It never rejects. */
  readonly removeMessages: (refs: readonly MessageRef[]) => Promise<void>;
  readonly identity: Pick<Identity, "userId">;
  readonly address: SlackAddress;
  /** Returns those of these messages that show other open turns of the conversation. */
  readonly otherTurnsShow: (refs: readonly MessageRef[]) => Promise<readonly MessageRef[]>;
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
 * Slack's limits have no room for it. Where an edit with the final text would have to wait, the text is
 * posted, and the message with its beginning removed.
 */
export function createMessageTarget(options: MessageTargetOptions): MessageTarget {
  const { api, scheduler, removeMessages, identity, address, isResumed, onPost, log } = options;
  const { channel, thread } = address;
  // What stands in the channel itself has a placeholder.
  const session =
    thread === undefined
      ? undefined
      : options.sessions.open({ channel, thread, title: options.title, isResumed });
  const messages = createReplyMessages(options);
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

  /** Shows the final text of a message, and resolves to the message that shows it. */
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
    return thread !== undefined && scheduler.waitMs(lanes.posts(channel), "final") < error.retryAfterMs;
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
      // The last preview and the final content are often equal, and an edit would only count against the
      // limit.
      if (messages.at(ref).key === toKey(content)) return toJson(ref);
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
    roomInMs: (kind) => growing.roomInMs(kind),
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

/** A preview that has to wait longer is outdated. */
const previewWithinMs = 1000;

interface GrowingMessagesOptions extends Pick<
  MessageTargetOptions,
  "api" | "scheduler" | "streams" | "address" | "clock" | "log"
> {
  readonly messages: ReturnType<typeof createReplyMessages>;
}

/**
 * Shows text as native streams, or as posts that are edited and for whose final edit room is kept. In a
 * channel only the person who is answered would see a stream grow, so that messages there are edited.
 */
function createGrowingMessages(options: GrowingMessagesOptions) {
  const { api, scheduler, streams, messages, address, clock, log } = options;
  const { channel, thread } = address;
  /** The reply shares the room for previews in this lane. */
  let joined: { readonly lane: string; readonly leave: () => void } | undefined;

  /** Makes the reply share the room of that lane, and of no other. */
  function join(lane: string): void {
    if (joined?.lane === lane) return;
    joined?.leave();
    joined = { lane, leave: scheduler.join(lane) };
  }

  const streamThread = (): string | undefined =>
    isDirectMessages(channel) && streams.isOn() ? thread : undefined;

  const reserve = (lane: string): Reservation | undefined => reserveNow(scheduler, lane);

  function canReserve(lane: string): boolean {
    const reservation = reserve(lane);
    reservation?.release();
    return reservation !== undefined;
  }

  async function postEditable(content: MessageContent, timing: CallTiming): Promise<MessageRef | undefined> {
    const reservation = reserve(lanes.update);
    if (reservation === undefined) return undefined;
    try {
      const ref = await messages.post(content, timing);
      messages.at(ref).reservation = reservation;
      join(lanes.update);
      return ref;
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** Starts a stream. The result is `undefined` where there is none, or no room for one. */
  async function startStream(text: string, timing: CallTiming): Promise<MessageRef | undefined> {
    const root = streamThread();
    const beginning = streamBeginning(text);
    if (root === undefined || beginning === "") return undefined;
    if (scheduler.waitMs([lanes.startStream], "final") > 0) return undefined;
    const reservation = reserve(lanes.stopStream);
    if (reservation === undefined) return undefined;
    let ref: MessageRef;
    try {
      // The room for its end limits how many there are.
      ref = await api.startStream(channel, root, escapeMarkdown(beginning), {
        ...timing,
        urgency: "final",
      });
    } catch (error) {
      reservation.release();
      if (isLimited(error) || streams.note(error)) return undefined;
      messages.failed(error);
      throw error;
    }
    const index = messages.refs.length;
    const mark = messages.markOf(index);
    const stream = createNativeStream({
      api,
      ref,
      started: beginning,
      mark,
      reservation,
      clock,
      log,
    });
    messages.add(ref, { index, stream, lastPreviewAt: clock.monotonic() });
    join(lanes.appendStream);
    return ref;
  }

  return {
    /**
     * Posts the first text of a message: as a stream where there can be one, else as a post.
     * @throws ParleyError `platform-unreachable` with `retryAfterMs` where there is no room now
     */
    async post(content: MessageContent, signal: AbortSignal): Promise<MessageRef> {
      const timing: CallTiming = { urgency: "preview", withinMs: previewWithinMs, signal };
      const ref = (await startStream(content.text, timing)) ?? (await postEditable(content, timing));
      if (ref !== undefined) return ref;
      // A command's placeholder is the only sign of work that it has.
      if (content.text === "") return await messages.post(content, { ...timing, withinMs: postWithinMs });
      throw new ParleyError("platform-unreachable", "Slack has no room for streaming text", {
        retryAfterMs: 1000,
      });
    },
    /** Shows more text. Without room for its final edit the message stays as it is. */
    async extend(
      ref: MessageRef,
      content: MessageContent,
      given: Omit<CallTiming, "withinMs">,
    ): Promise<void> {
      const timing: CallTiming = { ...given, withinMs: previewWithinMs };
      const its = messages.at(ref);
      const { stream } = its;
      if (stream?.isOpen() === true) {
        its.lastPreviewAt = clock.monotonic();
        if (stream.takes(content.text)) {
          await stream.append(content.text, timing);
          if (stream.isOpen()) return;
        } else await stream.stop({ ...timing, withinMs: editWithinMs });
      }
      its.reservation ??= reserve(lanes.update);
      if (its.reservation === undefined) return;
      join(lanes.update);
      its.lastPreviewAt = clock.monotonic();
      await messages.update(ref, content, timing);
    },
    /** Returns what {@link EditTarget.roomInMs} says. */
    roomInMs(kind: "first" | "preview"): number {
      const last = messages.refs.at(-1);
      if (last === undefined) {
        const canStream = streamThread() !== undefined && canReserve(lanes.stopStream);
        return Math.min(
          canReserve(lanes.update) ? scheduler.waitMs(lanes.posts(channel), "preview") : Infinity,
          canStream ? scheduler.waitMs([lanes.startStream], "final") : Infinity,
        );
      }
      const its = messages.at(last);
      const lane = its.stream?.isOpen() === true ? lanes.appendStream : lanes.update;
      if (lane === lanes.update && its.reservation === undefined && !canReserve(lane)) return Infinity;
      const intervalMs = kind === "first" ? 0 : scheduler.previewIntervalMs(lane);
      const nextInMs = its.lastPreviewAt + intervalMs - clock.monotonic();
      return Math.max(0, nextInMs, scheduler.waitMs([lane], "preview"));
    },
    /** Gives back the room that the messages hold. */
    close(): void {
      for (const { stream, reservation } of messages.all()) {
        stream?.close();
        reservation?.release();
      }
      joined?.leave();
    },
  };
}
