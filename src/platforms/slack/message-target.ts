import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Urgency } from "../delivery/delivery-lane.ts";
import type { DeliveryScheduler, Reservation } from "../delivery/delivery-scheduler.ts";
import type { EditTarget, MessageContent } from "../delivery/edit-target.ts";
import { isTransient } from "../delivery/platform-retry.ts";
import { isDirectMessages, parseMessageRef, type SlackAddress } from "./address.ts";
import { isLimited, lanes, type CallTiming, type DeliveryCalls } from "./delivery-calls.ts";
import { slackErrorCode } from "./errors.ts";
import { escapeMarkdown } from "./escape-markdown.ts";
import { escapedBytes } from "./markdown.ts";
import { sendInForm, toPlainSection, toSlackContent, type ContentForm } from "./message-blocks.ts";
import {
  createNativeStream,
  streamBeginning,
  type NativeStream,
  type StreamSupport,
} from "./native-stream.ts";
import { createPostedMessages } from "./posted-messages.ts";
import type { ReplacedMessages } from "./replaced-messages.ts";
import { createStatusLine, type StatusLine } from "./status-line.ts";
import type { Identity, MessageRef, SlackApi } from "./web-api.ts";

/** `chat.update` accepts 4,000 bytes of text; this leaves a margin. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;
/** How long a final edit waits for room before the text is posted anew. */
const editWithinMs = 2000;
const previewWithinMs = 1000;
const postWithinMs = 100_000;

/** What {@link createMessageTarget} needs. */
export interface MessageTargetOptions {
  /** For public replies: waits for nothing. */
  readonly api: SlackApi;
  readonly calls: DeliveryCalls;
  readonly scheduler: DeliveryScheduler;
  readonly streams: StreamSupport;
  readonly replaced: ReplacedMessages;
  readonly identity: Pick<Identity, "teamId" | "userId">;
  readonly address: SlackAddress;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  /** A stream is ended after so long, and its message edited from then on. */
  readonly streamLifeMs: number;
  /** Called after each post; the reply's first message can become a thread's root. */
  readonly onPost: (ref: MessageRef) => void;
  readonly log: Log;
}

/** @see {@link createMessageTarget} */
export interface MessageTarget extends EditTarget {
  /** The reply's address is saved: messages that it does not contain any more are removed. Never rejects. */
  saved(): Promise<void>;
}

/** A message of the reply. */
interface Shown {
  readonly index: number;
  /** What it shows, as {@link toKey} says; `undefined` where that is not known. */
  key?: string | undefined;
  /** The form that Slack accepted last. */
  form?: ContentForm;
  /** It was a stream once: it has no mark until it is edited. */
  stream?: NativeStream;
  /** Room for its final edit. */
  reservation?: Reservation | undefined;
  lastPreviewAt: number;
}

/**
 * Shows a reply in messages of a channel, thread or direct message, in one of three ways, as the limits allow when its
 * first text is there: a native stream; a post that is edited, with room kept for the final edit; or a status line until
 * the whole text is one post. People in a channel see a stream of somebody else only when it ends, so that edits come
 * first there.
 */
export function createMessageTarget(options: MessageTargetOptions): MessageTarget {
  const { api, calls, scheduler, streams, replaced, identity, address, onPost, log } = options;
  const { channel, thread } = address;
  const kind = isDirectMessages(channel) ? "direct" : "channel";
  const posts = lanes.posts(channel);
  const found = createPostedMessages(api, address, identity.userId);
  /** The reply's messages in order. */
  const refs: MessageRef[] = (address.refs ?? []).map(parseMessageRef);
  const shown = new Map<string, Shown>(refs.map(({ ts }, index) => [ts, { index, lastPreviewAt: 0 }]));
  /** Messages of an earlier process that may have been replaced by it. */
  const unchecked = new Set(options.isResumed ? refs.map(({ ts }) => ts) : []);
  const joined = new Map<string, () => void>();
  /** Messages in whose place others were posted. */
  const outdated: MessageRef[] = [];
  let isInvitationRequested = false;
  let mayBePosted = options.isResumed;
  /** The text cannot be streamed. */
  let mustEdit = false;
  const status: StatusLine | undefined = createStatus(options);

  function shownAt({ ts }: MessageRef): Shown {
    const known = shown.get(ts) ?? { index: 0, lastPreviewAt: 0 };
    shown.set(ts, known);
    return known;
  }

  /** From now on it shares the room for previews. */
  function join(lane: string): void {
    if (!joined.has(lane)) joined.set(lane, scheduler.join(lane));
  }

  const reserveEdit = (): Reservation | undefined =>
    scheduler.waitMs([lanes.update], "final") > 0 ? undefined : scheduler.reserve(lanes.update);

  function canReserve(lane: string): boolean {
    if (scheduler.waitMs([lane], "final") > 0) return false;
    const reservation = scheduler.reserve(lane);
    reservation?.release();
    return reservation !== undefined;
  }

  async function postWhole(
    content: MessageContent,
    timing: CallTiming,
    replaces?: string,
  ): Promise<MessageRef> {
    const index = replaces === undefined ? refs.length : shownAt({ channel, ts: replaces }).index;
    const mark = { mark: found.markOf(index), ...(replaces === undefined ? {} : { replaces }) };
    try {
      return await sendInForm(content, async (wanted, form) => {
        const ref = await calls.post({ channel, thread }, wanted, { ...timing, mark });
        status?.posted();
        shown.set(ref.ts, { index, key: toKey(content), form, lastPreviewAt: performance.now() });
        return ref;
      });
    } catch (error) {
      mayBePosted ||= isUncertain(error);
      throw error;
    }
  }

  /** Posts the first text of a message that will grow, in the best way there is room for. */
  async function postGrowing(content: MessageContent, signal: AbortSignal): Promise<MessageRef> {
    const timing: CallTiming = { urgency: "first", withinMs: previewWithinMs, signal };
    const beginning = thread !== undefined && streams.isOn(kind) ? streamBeginning(content.text) : "";
    const tries = [() => startStream(beginning, timing), () => postEditable(content, timing)];
    for (const start of kind === "direct" ? tries : tries.toReversed()) {
      const ref = await start();
      if (ref !== undefined) return ref;
    }
    // A command's placeholder: the only sign of work that it has.
    if (content.text === "") return await postWhole(content, { ...timing, withinMs: postWithinMs });
    mustEdit ||= beginning === "";
    throw new ParleyError("platform-unreachable", "Slack has no room for streaming text", {
      retryAfterMs: 1000,
    });
  }

  async function postEditable(content: MessageContent, timing: CallTiming): Promise<MessageRef | undefined> {
    const reservation = reserveEdit();
    if (reservation === undefined) return undefined;
    try {
      const ref = await postWhole(content, timing);
      shownAt(ref).reservation = reservation;
      join(lanes.update);
      return ref;
    } catch (error) {
      reservation.release();
      throw error;
    }
  }

  /** `undefined`: there is no room for a stream now, or there are none here. */
  async function startStream(beginning: string, timing: CallTiming): Promise<MessageRef | undefined> {
    if (thread === undefined || beginning === "" || scheduler.waitMs([lanes.startStream], "first") > 0)
      return undefined;
    const reservation = scheduler.reserve(lanes.stopStream);
    if (reservation === undefined) return undefined;
    const recipient = { user: address.user, team: identity.teamId };
    let ref: MessageRef;
    try {
      ref = await calls.startStream({ channel, thread, recipient }, escapeMarkdown(beginning), timing);
    } catch (error) {
      reservation.release();
      if (isLimited(error) || streams.note(kind, error)) return undefined;
      mayBePosted ||= isUncertain(error);
      throw error;
    }
    status?.posted();
    const index = refs.length;
    const mark = { mark: found.markOf(index) };
    const { streamLifeMs: lifeMs } = options;
    const stream = createNativeStream({ calls, ref, started: beginning, mark, reservation, lifeMs, log });
    shown.set(ref.ts, { index, stream, lastPreviewAt: performance.now() });
    join(lanes.appendStream);
    return ref;
  }

  /** What an earlier call, maybe of an earlier process, has posted for that message without its address being saved. */
  async function findPosted(index: number): Promise<MessageRef | undefined> {
    const [first, ...others] = await found.find(index, refs);
    if (first === undefined) return undefined;
    shown.set(first.ts, { index, lastPreviewAt: 0 });
    for (const other of others) outdated.push(other);
    return first;
  }

  async function update(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<void> {
    const its = shownAt(ref);
    const mark = { mark: found.markOf(its.index) };
    its.key = undefined;
    const { reservation } = its;
    const send = async (wanted: Parameters<DeliveryCalls["update"]>[1], form: ContentForm): Promise<void> => {
      try {
        await calls.update(ref, wanted, { ...timing, mark, reservation });
      } catch (error) {
        if (slackErrorCode(error) !== "streaming_state_conflict") throw error;
        // An earlier process has started it.
        await calls.stopStream(
          ref,
          { markdown: "", blocks: [], mark },
          { ...timing, withinMs: editWithinMs },
        );
        await calls.update(ref, wanted, { ...timing, mark });
      }
      its.form = form;
    };
    await sendInForm(content, send, its.form);
    its.key = toKey(content);
  }

  /** The message that counts: an earlier process may have posted another one in its place. */
  async function current(ref: MessageRef): Promise<MessageRef> {
    if (!unchecked.has(ref.ts)) return ref;
    const { index } = shownAt(ref);
    const newest = await newestOf(index);
    unchecked.delete(ref.ts);
    if (newest === undefined || Number(newest.ts) <= Number(ref.ts)) return ref;
    shown.set(newest.ts, { index, lastPreviewAt: 0 });
    refs[index] = newest;
    outdated.push(ref);
    return newest;
  }

  async function newestOf(index: number): Promise<MessageRef | undefined> {
    try {
      return (await found.find(index, refs))[0];
    } catch (error) {
      if (isTransient(error)) throw error;
      log.info({ err: error }, "messages of an earlier run not looked up");
      return undefined;
    }
  }

  /** A growing text. Without room for its final edit the message stays as it is. */
  async function preview(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<void> {
    const its = shownAt(ref);
    const { stream } = its;
    if (stream?.isOpen() === true) {
      its.lastPreviewAt = performance.now();
      if (stream.takes(content.text)) {
        await stream.append(content.text, timing);
        if (stream.isOpen()) return;
      } else await stream.stop({ ...timing, withinMs: editWithinMs });
    }
    its.reservation ??= reserveEdit();
    if (its.reservation === undefined) return;
    join(lanes.update);
    its.lastPreviewAt = performance.now();
    // The room that is kept is for the final text.
    const kept = its.reservation;
    its.reservation = undefined;
    try {
      await update(ref, content, timing);
    } finally {
      its.reservation = kept;
    }
  }

  async function finish(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<MessageRef> {
    const its = shownAt(ref);
    try {
      if (its.stream?.isOpen() === true && (await its.stream.finish(content, timing))) {
        its.key = toKey(content);
        return ref;
      }
      await update(ref, content, timing);
      its.reservation?.release();
      return ref;
    } catch (error) {
      if (timing.urgency !== "final") throw error;
      // People have deleted it, or Slack edits it no more.
      const isRefused = isParleyError(error, "platform-rejected") && !isTransient(error);
      // Otherwise whichever way is free first.
      const isSlower =
        isLimited(error) && canReplace() && scheduler.waitMs(posts, "final") < error.retryAfterMs;
      if (!isRefused && !isSlower) throw error;
      log.info({ err: error }, "message not editable now: posting its text anew");
      return await replace(ref, content, timing);
    }
  }

  /** The root of a thread stays: the thread's conversation is named after it. */
  function canReplace(): boolean {
    return thread !== undefined;
  }

  async function replace(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<MessageRef> {
    const its = shownAt(ref);
    const again = mayBePosted
      ? (await found.find(its.index, refs)).find(({ ts }) => Number(ts) > Number(ref.ts))
      : undefined;
    const posted = again ?? (await postWhole(content, { ...timing, withinMs: postWithinMs }, ref.ts));
    its.stream?.close();
    its.reservation?.release();
    refs[its.index] = posted;
    outdated.push(ref);
    return posted;
  }

  /** Asks a command's caller to invite the bot, through the `response_url`: it cannot post in the channel. */
  async function requestInvitation(error: unknown): Promise<void> {
    const code = slackErrorCode(error);
    if (code !== "not_in_channel" && code !== "channel_not_found") return;
    if (address.responseUrl === undefined || isInvitationRequested) return;
    isInvitationRequested = true;
    const text =
      "I am not in this channel, so I cannot answer here. Add me with /invite, or write to me directly.";
    await api.respond(address.responseUrl, { text, blocks: [toPlainSection(text)] });
  }

  async function post(content: MessageContent, signal: AbortSignal, urgency: Urgency): Promise<MessageRef> {
    const index = refs.length;
    if (mayBePosted) {
      const known = await findPosted(index);
      mayBePosted = options.isResumed;
      if (known !== undefined) {
        await update(known, content, { urgency, withinMs: editWithinMs, signal });
        return known;
      }
    }
    return isEnd(content) || urgency === "final"
      ? await postWhole(content, { urgency: "final", withinMs: postWithinMs, signal })
      : await postGrowing(content, signal);
  }

  return {
    maxLength: maxMessageBytes,
    lengthOf: escapedBytes,
    maxMessages,
    minEditIntervalMs,
    ...(status === undefined ? {} : { sign: status }),
    async post(content, signal, urgency): Promise<Json> {
      try {
        const ref = await post(content, signal, urgency);
        refs.push(ref);
        onPost(ref);
        return toJson(ref);
      } catch (error) {
        await requestInvitation(error);
        throw error;
      }
    },
    async edit(given, content, signal, urgency): Promise<Json> {
      const ref = await current(parseMessageRef(given));
      // The last preview and the final content are often equal: an edit would only count against the limit.
      if (shownAt(ref).key === toKey(content)) return toJson(ref);
      if (isEnd(content))
        return toJson(await finish(ref, content, { urgency, withinMs: editWithinMs, signal }));
      await preview(ref, content, { urgency, withinMs: previewWithinMs, signal });
      return toJson(ref);
    },
    upload: (files) => api.upload(channel, thread, files),
    roomInMs(urgency) {
      const last = refs.at(-1);
      if (last === undefined) {
        const canEdit = canReserve(lanes.update);
        const canStream =
          !mustEdit && thread !== undefined && streams.isOn(kind) && canReserve(lanes.stopStream);
        return Math.min(
          canEdit ? scheduler.waitMs(posts, "first") : Infinity,
          canStream ? scheduler.waitMs([lanes.startStream], "first") : Infinity,
        );
      }
      const its = shownAt(last);
      const lane = its.stream?.isOpen() === true ? lanes.appendStream : lanes.update;
      if (lane === lanes.update && its.reservation === undefined && !canReserve(lane)) return Infinity;
      const intervalMs = urgency === "first" ? 0 : scheduler.previewIntervalMs(lane);
      const nextInMs = its.lastPreviewAt + intervalMs - performance.now();
      return Math.max(0, nextInMs, scheduler.waitMs([lane], urgency));
    },
    saved: () => replaced.remove(outdated.splice(0)),
    close() {
      for (const { stream, reservation } of shown.values()) {
        stream?.close();
        reservation?.release();
      }
      for (const leave of joined.values()) leave();
      joined.clear();
    },
  };
}

/** Where nothing can be shown below a thread, a command has its placeholder, if edits are not short. */
function createStatus({ calls, address, log }: MessageTargetOptions): StatusLine | undefined {
  const { channel, thread = messageOf(address) } = address;
  return thread === undefined ? undefined : createStatusLine({ calls, channel, thread, log });
}

/** `ts` of the message that is answered in the channel itself; a command has none. */
function messageOf({ key }: SlackAddress): string | undefined {
  return /:(\d{10}\.\d{6})$/.exec(key)?.[1];
}

const isEnd = ({ state }: MessageContent): boolean => state === "finished" || state === "failed";

/** Whether Slack may have taken a call that failed: there was no response. */
function isUncertain(error: unknown): boolean {
  return isParleyError(error, "platform-unreachable") && !isLimited(error);
}

const toJson = ({ channel, ts }: MessageRef): Json => ({ channel, ts });

/** Equal for contents that look the same. */
function toKey(content: MessageContent): string {
  return JSON.stringify(toSlackContent(content));
}
