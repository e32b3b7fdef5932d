import type { Clock } from "../../../core/clock.ts";
import { isParleyError } from "../../../core/errors.ts";
import type { Log } from "../../../core/telemetry.ts";
import type { MessageContent } from "../../delivery/message-plan.ts";
import { isTransient } from "../../delivery/receive-patiently.ts";
import {
  isCommandKey,
  isDirectMessages,
  type SlackAddress,
  type SlackMessageInfo,
  type MessageRef,
} from "../address.ts";
import { isLimited, type CallTiming } from "../transport/lanes.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { slackErrorCode } from "../errors.ts";
import { sendInForm, type ContentForm } from "./message-blocks.ts";
import type { createNativeStream } from "./native-stream.ts";

/** An end that would wait longer for room is posted anew. */
export const editWithinMs = 500;
/** A post with a whole text may wait so long for room. */
export const postWithinMs = 100_000;

interface ReplyMessage {
  /** The index is the message's place in the reply, from 0. */
  readonly index: number;
  /** The key is what {@link toKey} makes of the shown content. It is `undefined` where that is not known. */
  key?: string | undefined;
  /** Slack accepted this form last. */
  form?: ContentForm;
  /** The message began as this stream. */
  stream?: ReturnType<typeof createNativeStream>;
  /** This is a time of {@link Clock.monotonic}. */
  lastGrownAt: number;
}

interface ReplyMessagesOptions extends PostedMessagesOptions {
  readonly api: Pick<SlackApi, "post" | "update" | "stopStream" | "messagesAfter">;
  readonly address: SlackAddress;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  /** Removes messages that no saved address contains. It never rejects. */
  readonly removeMessages: (refs: readonly MessageRef[]) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Returns the messages of one reply, also those whose address was not saved. */
export function createMessagesOfReply(options: ReplyMessagesOptions) {
  const { api, address, isResumed, clock, log } = options;
  const posted = createPostedMessages(api, address, options);
  const { channel, thread } = address;
  const refs = [...(address.refs ?? [])];
  const messages = new Map<string, ReplyMessage>(
    refs.map(({ ts }, index) => [ts, { index, lastGrownAt: Number.NEGATIVE_INFINITY }]),
  );
  /** These messages may have been replaced without the address being saved. */
  const unchecked = new Set(isResumed ? refs.map(({ ts }) => ts) : []);
  let replaced: MessageRef[] = [];
  /** By the `ts` of a replaced message the one that stands in its place. */
  const inPlaceOf = new Map<string, MessageRef>();
  let mayBePosted = isResumed;

  function at({ ts }: MessageRef): ReplyMessage {
    const known = messages.get(ts) ?? { index: 0, lastGrownAt: Number.NEGATIVE_INFINITY };
    messages.set(ts, known);
    return known;
  }

  /** Finds messages. The history may be closed to the bot, and then nothing is found. */
  async function find(index: number): Promise<readonly MessageRef[]> {
    try {
      return await posted.find(index, refs);
    } catch (error) {
      if (!isParleyError(error, "platform-rejected") || isTransient(error)) throw error;
      log.info({ err: error }, "messages of a reply not looked up");
      return [];
    }
  }

  /** Notes that the other one stands in its place from now on. */
  function replace(ref: MessageRef, other: MessageRef): void {
    const { index, stream } = at(ref);
    stream?.close();
    refs[index] = other;
    replaced.push(ref);
    inPlaceOf.set(ref.ts, other);
  }

  /** Notes a failed post, which may have been made where there was no response. */
  function failed(error: unknown): void {
    mayBePosted ||= isParleyError(error, "platform-unreachable") && !isLimited(error);
  }

  return {
    refs,
    at,
    add: ({ ts }: MessageRef, message: ReplyMessage) => void messages.set(ts, message),
    all: (): Iterable<ReplyMessage> => messages.values(),
    markOf: (index: number): string => posted.markOf(index),
    /** Posts the next message, or one in place of `replaces`. */
    async post(content: MessageContent, timing: CallTiming, replaces?: MessageRef): Promise<MessageRef> {
      const index = replaces === undefined ? refs.length : at(replaces).index;
      const mark = posted.markOf(index);
      try {
        return await sendInForm(content, async (wanted, form) => {
          const ref = await api.post(channel, thread, wanted, { ...timing, mark });
          messages.set(ref.ts, { index, key: toKey(content), form, lastGrownAt: clock.monotonic() });
          return ref;
        });
      } catch (error) {
        failed(error);
        if (replaces !== undefined) unchecked.add(replaces.ts);
        throw error;
      }
    },
    async update(ref: MessageRef, content: MessageContent, timing: CallTiming): Promise<void> {
      const its = at(ref);
      const mark = posted.markOf(its.index);
      its.key = undefined;
      await sendInForm(
        content,
        async (wanted, form) => {
          try {
            await api.update(ref, wanted, { ...timing, mark });
          } catch (error) {
            if (slackErrorCode(error) !== "streaming_state_conflict") throw error;
            // An earlier process has started the stream.
            const end = { goesOn: true, markdown: "", blocks: [], mark };
            await api.stopStream(ref, end, { ...timing, withinMs: editWithinMs });
            await api.update(ref, wanted, { ...timing, mark });
          }
          its.form = form;
        },
        its.form,
      );
      its.key = toKey(content);
    },
    /** Finds what an earlier call, maybe of an earlier process, has posted as the next message. */
    async findNext(): Promise<MessageRef | undefined> {
      if (!mayBePosted) return undefined;
      const index = refs.length;
      const [first, ...others] = await find(index);
      mayBePosted = isResumed;
      if (first === undefined) return undefined;
      messages.set(first.ts, { index, lastGrownAt: Number.NEGATIVE_INFINITY });
      replaced.push(...others);
      return first;
    },
    /** Returns the message that counts: this one, or one that was posted in its place. */
    async current(given: MessageRef): Promise<MessageRef> {
      // A call that failed after it had found the other one is made again with the same message.
      let ref = given;
      for (let next = inPlaceOf.get(ref.ts); next !== undefined; next = inPlaceOf.get(ref.ts)) ref = next;
      if (!unchecked.has(ref.ts)) return ref;
      const { index } = at(ref);
      const found = await find(index);
      unchecked.delete(ref.ts);
      // A run that was abandoned just after it had saved the address has not removed these.
      await options.removeMessages(found.filter(({ ts }) => Number(ts) < Number(ref.ts)));
      const [newest, ...others] = found.filter(({ ts }) => Number(ts) > Number(ref.ts));
      if (newest === undefined) return ref;
      // Runs that could not save the address have posted these too.
      replaced.push(...others);
      messages.set(newest.ts, { index, lastGrownAt: Number.NEGATIVE_INFINITY });
      replace(ref, newest);
      return newest;
    },
    failed,
    replace,
    /** Takes the messages that were replaced since the last call. */
    takeReplaced(): readonly MessageRef[] {
      const taken = replaced;
      replaced = [];
      return taken;
    },
  };
}

/** Returns a key that is equal for contents that look the same, as the last preview and the end often do. */
export function toKey({ state, text, status, ...below }: MessageContent): string {
  const { sources = [], notices = [], failure, retryKey, confirm, actions = [], forms = [] } = below;
  // Whether more text comes is seen where there is none yet.
  const isWaiting = text.trim() === "" && (state === "waiting" || state === "streaming");
  return JSON.stringify([
    isWaiting,
    text,
    status,
    sources,
    notices,
    failure,
    retryKey,
    confirm,
    actions,
    forms,
  ]);
}

/** The time of a message comes from Slack. */
const marginMs = 60_000;
/** The time of a command comes from the clock of a machine, which may be wrong. */
const wrongClockMs = 60 * 60_000;

interface PostedMessagesOptions {
  readonly identity: Pick<Identity, "userId">;
}

/**
 * Finds posts by their metadata, because Slack has no idempotency key for posts, and markdown blocks lose
 * their block ids. A stream gets its mark only when it ends. Until then it is known by its saved address, and
 * between its start and that by being the bot's one message after the question that has no mark: in direct
 * messages one turn of a thread runs at a time.
 */
export function createPostedMessages(
  api: Pick<SlackApi, "messagesAfter">,
  { key, channel, thread, since }: SlackAddress,
  { identity }: PostedMessagesOptions,
) {
  /** Returns the mark of the reply's message number `index`, from 0. */
  const markOf = (index: number): string => `${key}/${index}`;

  function isLostStream({ user, metadata, files = [], ts }: SlackMessageInfo): boolean {
    const isOwn =
      user === identity.userId && isDirectMessages(channel) && thread !== undefined && ts !== thread;
    return isOwn && metadata === undefined && files.length === 0 && Number(ts) * 1000 > since;
  }

  return {
    markOf,
    /**
     * Finds the messages with that mark, newest first. The first one counts, and was posted in place of the
     * others. The messages `known` are those of the reply whose address is saved.
     */
    async find(index: number, known: readonly MessageRef[]): Promise<readonly MessageRef[]> {
      const sinceMs = since - (isCommandKey(key) ? wrongClockMs : marginMs);
      const found = await api.messagesAfter(channel, thread, (sinceMs / 1000).toFixed(6));
      const recent = found.toSorted((a, b) => Number(b.ts) - Number(a.ts));
      const isMarked = ({ metadata }: SlackMessageInfo) => metadata?.event_payload?.mark === markOf(index);
      const isUnknown = ({ ts }: SlackMessageInfo) => known.every((ref) => ref.ts !== ts);
      const marked = recent.filter(isMarked);
      const isNew = marked.length === 0 && index >= known.length;
      const ours = isNew ? recent.filter((one) => isUnknown(one) && isLostStream(one)) : marked;
      return ours.map(({ ts }) => ({ channel, ts }));
    },
  };
}
