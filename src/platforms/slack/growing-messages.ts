import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DeliveryScheduler, Reservation } from "../delivery/delivery-scheduler.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import { isDirectMessages, type SlackAddress } from "./address.ts";
import { isLimited, lanes, type CallTiming, type DeliveryCalls } from "./delivery-calls.ts";
import { escapeMarkdown } from "./escape-markdown.ts";
import { createNativeStream, streamBeginning, type StreamSupport } from "./native-stream.ts";
import { editWithinMs, postWithinMs, type ReplyMessages } from "./reply-messages.ts";
import type { MessageRef } from "./web-api.ts";

/** A preview that has to wait longer is outdated. */
const previewWithinMs = 1000;

/** Shows texts that are not complete yet. */
export interface GrowingMessages {
  /**
   * Posts the first text of a message, in the best way there is room for.
   * @throws ParleyError `platform-unreachable` with `retryAfterMs`: there is no room now
   */
  post(content: MessageContent, signal: AbortSignal): Promise<MessageRef>;
  /** Shows more text. Without room for its final edit the message stays as it is. */
  extend(ref: MessageRef, content: MessageContent, timing: Omit<CallTiming, "withinMs">): Promise<void>;
  /** As {@link EditTarget.roomInMs}. */
  roomInMs(kind: "first" | "preview"): number;
  /** Gives back the room that it holds. */
  close(): void;
}

/** What {@link createGrowingMessages} needs. */
export interface GrowingMessagesOptions {
  readonly calls: DeliveryCalls;
  readonly scheduler: DeliveryScheduler;
  readonly streams: StreamSupport;
  readonly messages: ReplyMessages;
  readonly address: SlackAddress;
  /** The workspace of the person who is answered. */
  readonly teamId: string;
  readonly streamLifeMs: number;
  /** Called after a stream was started. */
  readonly onPosted: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * As native streams, or as posts that are edited and for whose final edit room is kept. People in a channel see the stream
 * of somebody else's answer only when it has ended, so that edits come first there.
 */
export function createGrowingMessages(options: GrowingMessagesOptions): GrowingMessages {
  const { calls, scheduler, streams, messages, address, onPosted, clock, log } = options;
  const { channel, thread } = address;
  const kind = isDirectMessages(channel) ? "direct" : "channel";
  /** Ends of this reply's part in the room for previews, by lane. */
  const joined = new Map<string, () => void>();
  /** The text has turned out not to be for a stream. */
  let mustEdit = false;

  /** From now on it shares the room of that lane, and of no other. */
  function join(lane: string): void {
    if (joined.has(lane)) return;
    leave();
    joined.set(lane, scheduler.join(lane));
  }

  function leave(): void {
    for (const end of joined.values()) end();
    joined.clear();
  }

  /** Room for one more call, not only later but now: a limited method is not counted on. */
  function reserve(lane: string): Reservation | undefined {
    return scheduler.waitMs([lane], "final") > 0 ? undefined : scheduler.reserve(lane);
  }

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

  /** `undefined`: there is no room for a stream now, or there are none here. */
  async function startStream(beginning: string, timing: CallTiming): Promise<MessageRef | undefined> {
    if (thread === undefined || beginning === "") return undefined;
    if (scheduler.waitMs([lanes.startStream], "first") > 0) return undefined;
    const reservation = reserve(lanes.stopStream);
    if (reservation === undefined) return undefined;
    const recipient = { user: address.user, team: options.teamId };
    let ref: MessageRef;
    try {
      ref = await calls.startStream({ channel, thread, recipient }, escapeMarkdown(beginning), timing);
    } catch (error) {
      reservation.release();
      if (isLimited(error) || streams.note(kind, error)) return undefined;
      messages.failed(error);
      throw error;
    }
    onPosted();
    const index = messages.refs.length;
    const mark = { mark: messages.markOf(index) };
    const { streamLifeMs: lifeMs } = options;
    const stream = createNativeStream({
      calls,
      ref,
      started: beginning,
      mark,
      reservation,
      lifeMs,
      clock,
      log,
    });
    messages.add(ref, { index, stream, lastPreviewAt: clock.monotonic() });
    join(lanes.appendStream);
    return ref;
  }

  return {
    async post(content, signal) {
      const timing: CallTiming = { urgency: "first", withinMs: previewWithinMs, signal };
      const beginning = thread !== undefined && streams.isOn(kind) ? streamBeginning(content.text) : "";
      const ways = [() => startStream(beginning, timing), () => postEditable(content, timing)];
      for (const post of kind === "direct" ? ways : ways.toReversed()) {
        const ref = await post();
        if (ref !== undefined) return ref;
      }
      // A command's placeholder: the only sign of work that it has.
      if (content.text === "") return await messages.post(content, { ...timing, withinMs: postWithinMs });
      mustEdit ||= beginning === "";
      throw new ParleyError("platform-unreachable", "Slack has no room for streaming text", {
        retryAfterMs: 1000,
      });
    },
    async extend(ref, content, given) {
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
    roomInMs(urgency) {
      const last = messages.refs.at(-1);
      if (last === undefined) {
        const canStream = !mustEdit && thread !== undefined && streams.isOn(kind);
        return Math.min(
          canReserve(lanes.update) ? scheduler.waitMs(lanes.posts(channel), "first") : Infinity,
          canStream && canReserve(lanes.stopStream)
            ? scheduler.waitMs([lanes.startStream], "first")
            : Infinity,
        );
      }
      const its = messages.at(last);
      const lane = its.stream?.isOpen() === true ? lanes.appendStream : lanes.update;
      if (lane === lanes.update && its.reservation === undefined && !canReserve(lane)) return Infinity;
      const intervalMs = urgency === "first" ? 0 : scheduler.previewIntervalMs(lane);
      const nextInMs = its.lastPreviewAt + intervalMs - clock.monotonic();
      return Math.max(0, nextInMs, scheduler.waitMs([lane], urgency));
    },
    close() {
      for (const { stream, reservation } of messages.all()) {
        stream?.close();
        reservation?.release();
      }
      leave();
    },
  };
}
