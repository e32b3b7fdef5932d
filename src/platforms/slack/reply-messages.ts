import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Reservation } from "../delivery/delivery-scheduler.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import { isTransient } from "../delivery/platform-retry.ts";
import { parseMessageRef, type SlackAddress } from "./address.ts";
import { isLimited, type CallTiming, type DeliveryCalls } from "./delivery-calls.ts";
import { slackErrorCode } from "./errors.ts";
import { sendInForm, toSlackContent, type ContentForm } from "./message-blocks.ts";
import type { NativeStream } from "./native-stream.ts";
import type { PostedMessages } from "./posted-messages.ts";
import type { MessageRef } from "./web-api.ts";

/** How long an edit that people wait for may wait for room. */
export const editWithinMs = 2000;
/** How long a post with a whole text may. */
export const postWithinMs = 100_000;

/** A message of a reply. */
export interface ReplyMessage {
  /** Its place in the reply, from 0. */
  readonly index: number;
  /** What it shows, as {@link toKey} says; `undefined` where that is not known. */
  key?: string | undefined;
  /** The form that Slack accepted last. */
  form?: ContentForm;
  /** It began as a stream. */
  stream?: NativeStream;
  /** Room for its final edit. */
  reservation?: Reservation | undefined;
  /** By {@link Clock.monotonic}. */
  lastPreviewAt: number;
}

/** The messages of one reply: posts and edits them whole, and finds those whose address was not saved. */
export interface ReplyMessages {
  /** In order. */
  readonly refs: MessageRef[];
  at(ref: MessageRef): ReplyMessage;
  add(ref: MessageRef, message: ReplyMessage): void;
  all(): Iterable<ReplyMessage>;
  markOf(index: number): string;
  /** Posts the next message, or one in place of `replaces`. */
  post(content: MessageContent, timing: CallTiming, replaces?: MessageRef): Promise<MessageRef>;
  update(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<void>;
  /** What an earlier call, maybe of an earlier process, has posted as the next message. */
  findNext(): Promise<MessageRef | undefined>;
  /** The message that counts: it or one that a call before, maybe of an earlier process, has posted in its place. */
  current(ref: MessageRef): Promise<MessageRef>;
  /** Notes a failed post: without a response it may have been made. */
  failed(error: unknown): void;
  /** `posted` stands in its place from now on. */
  replace(ref: MessageRef, posted: MessageRef): void;
  /** Takes the messages that were replaced since the last call. */
  takeReplaced(): readonly MessageRef[];
}

/** What {@link createReplyMessages} needs. */
export interface ReplyMessagesOptions {
  readonly calls: DeliveryCalls;
  readonly address: SlackAddress;
  readonly found: PostedMessages;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  /** Called after each post. */
  readonly onPosted: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** @see {@link ReplyMessages} */
export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { calls, address, found, isResumed, onPosted, clock, log } = options;
  const { channel, thread } = address;
  const refs = (address.refs ?? []).map(parseMessageRef);
  const messages = new Map<string, ReplyMessage>(
    refs.map(({ ts }, index) => [ts, { index, lastPreviewAt: Number.NEGATIVE_INFINITY }]),
  );
  /** Messages that may have been replaced without the address being saved. */
  const unchecked = new Set(isResumed ? refs.map(({ ts }) => ts) : []);
  let replaced: MessageRef[] = [];
  let mayBePosted = isResumed;

  function at({ ts }: MessageRef): ReplyMessage {
    const known = messages.get(ts) ?? { index: 0, lastPreviewAt: Number.NEGATIVE_INFINITY };
    messages.set(ts, known);
    return known;
  }

  /** The history may be closed to the bot: then nothing is found. */
  async function find(index: number): Promise<readonly MessageRef[]> {
    try {
      return await found.find(index, refs);
    } catch (error) {
      if (!isParleyError(error, "platform-rejected") || isTransient(error)) throw error;
      log.info({ err: error }, "messages of a reply not looked up");
      return [];
    }
  }

  function replace(ref: MessageRef, posted: MessageRef): void {
    const { index, stream, reservation } = at(ref);
    stream?.close();
    reservation?.release();
    refs[index] = posted;
    replaced.push(ref);
  }

  function failed(error: unknown): void {
    mayBePosted ||= isParleyError(error, "platform-unreachable") && !isLimited(error);
  }

  return {
    refs,
    at,
    add: ({ ts }, message) => void messages.set(ts, message),
    all: () => messages.values(),
    markOf: (index) => found.markOf(index),
    async post(content, timing, replaces) {
      const index = replaces === undefined ? refs.length : at(replaces).index;
      const mark = {
        mark: found.markOf(index),
        ...(replaces === undefined ? {} : { replaces: replaces.ts }),
      };
      try {
        return await sendInForm(content, async (wanted, form) => {
          const ref = await calls.post({ channel, thread }, wanted, { ...timing, mark });
          onPosted();
          messages.set(ref.ts, { index, key: toKey(content), form, lastPreviewAt: clock.monotonic() });
          return ref;
        });
      } catch (error) {
        failed(error);
        if (replaces !== undefined) unchecked.add(replaces.ts);
        throw error;
      }
    },
    async update(ref, content, timing) {
      const its = at(ref);
      const mark = { mark: found.markOf(its.index) };
      its.key = undefined;
      await sendInForm(
        content,
        async (wanted, form) => {
          try {
            await calls.update(ref, wanted, { ...timing, mark });
          } catch (error) {
            if (slackErrorCode(error) !== "streaming_state_conflict") throw error;
            // An earlier process has started it.
            const end = { markdown: "", blocks: [], mark };
            await calls.stopStream(ref, end, { ...timing, withinMs: editWithinMs });
            await calls.update(ref, wanted, { ...timing, mark });
          }
          its.form = form;
        },
        its.form,
      );
      its.key = toKey(content);
    },
    async findNext() {
      if (!mayBePosted) return undefined;
      const index = refs.length;
      const [first, ...others] = await find(index);
      mayBePosted = isResumed;
      if (first === undefined) return undefined;
      messages.set(first.ts, { index, lastPreviewAt: Number.NEGATIVE_INFINITY });
      replaced.push(...others);
      return first;
    },
    async current(ref) {
      if (!unchecked.has(ref.ts)) return ref;
      const { index } = at(ref);
      const [newest, ...others] = await find(index);
      unchecked.delete(ref.ts);
      if (newest === undefined || Number(newest.ts) <= Number(ref.ts)) return ref;
      // Of runs that could not save the address either.
      replaced.push(...others.filter(({ ts }) => ts !== ref.ts));
      messages.set(newest.ts, { index, lastPreviewAt: Number.NEGATIVE_INFINITY });
      replace(ref, newest);
      return newest;
    },
    failed,
    replace,
    takeReplaced() {
      const taken = replaced;
      replaced = [];
      return taken;
    },
  };
}

/** Equal for contents that look the same. */
export function toKey(content: MessageContent): string {
  return JSON.stringify(toSlackContent(content));
}
