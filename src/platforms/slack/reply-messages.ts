import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Reservation } from "../delivery/delivery-scheduler.ts";
import type { MessageContent } from "../delivery/message-plan.ts";
import { isTransient } from "../delivery/receive-patiently.ts";
import { isCommandKey, type SlackAddress, type SlackMessageInfo, parseMessageRef } from "./address.ts";
import { isLimited, type CallTiming, type DeliveryCalls } from "./delivery-calls.ts";
import { slackErrorCode } from "./errors.ts";
import { sendInForm, toSlackContent, type ContentForm } from "./message-blocks.ts";
import type { createNativeStream } from "./native-stream.ts";
import type { MessageRef, SlackApi } from "./web-api.ts";

/** How long an edit that people wait for may wait for room. */
export const editWithinMs = 2000;
/** How long a post with a whole text may. */
export const postWithinMs = 100_000;

/** A message of a reply. */
interface ReplyMessage {
  /** Its place in the reply, from 0. */
  readonly index: number;
  /** What it shows, as {@link toKey} says; `undefined` where that is not known. */
  key?: string | undefined;
  /** The form that Slack accepted last. */
  form?: ContentForm;
  /** It began as a stream. */
  stream?: ReturnType<typeof createNativeStream>;
  /** Room for its final edit. */
  reservation?: Reservation | undefined;
  /** By {@link Clock.monotonic}. */
  lastPreviewAt: number;
}

/** The messages of one reply: posts and edits them whole, and finds those whose address was not saved. */
interface ReplyMessages {
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
interface ReplyMessagesOptions {
  readonly calls: DeliveryCalls;
  readonly address: SlackAddress;
  readonly found: PostedMessages;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** @see {@link ReplyMessages} */
export function createReplyMessages(options: ReplyMessagesOptions): ReplyMessages {
  const { calls, address, found, isResumed, clock, log } = options;
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
            const end = { goesOn: true, markdown: "", blocks: [], mark };
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

/** A message's time comes from Slack. */
const marginMs = 60_000;
/** A command's time comes from the clock of a machine, which may be wrong. */
const wrongClockMs = 60 * 60_000;

/** Finds what was posted for a reply without a response, by this process or an earlier one. */
interface PostedMessages {
  /** The mark of the reply's message number `index`, from 0. */
  markOf(index: number): string;
  /**
   * The messages with that mark, newest first: the first one counts, and it was posted in place of the others. `known`
   * are messages of the reply whose address is saved.
   */
  find(index: number, known: readonly MessageRef[]): Promise<readonly MessageRef[]>;
}

/** What {@link createPostedMessages} needs to know besides. */
interface PostedMessagesOptions {
  readonly botUserId: string;
  /** Which of these messages show other turns. */
  readonly otherTurnsShow: (refs: readonly MessageRef[]) => Promise<readonly MessageRef[]>;
}

/**
 * Slack has no idempotency key for posts, but keeps metadata (markdown blocks lose their block ids). A stream gets its
 * mark only when it ends: until then it is known by its saved address, and between its start and that by being the one
 * message of the bot in the thread without a mark that no other open turn shows.
 */
export function createPostedMessages(
  api: Pick<SlackApi, "messagesAfter">,
  { key, channel, thread, since }: SlackAddress,
  { botUserId, otherTurnsShow }: PostedMessagesOptions,
): PostedMessages {
  const markOf = (index: number): string => `${key}/${index}`;

  function isLostStream({ user, metadata, files = [], ts }: SlackMessageInfo): boolean {
    const isOwn = user === botUserId && thread !== undefined && ts !== thread;
    return isOwn && metadata === undefined && files.length === 0 && Number(ts) * 1000 > since;
  }

  async function findLostStreams(recent: readonly SlackMessageInfo[]): Promise<MessageRef[]> {
    const lost = recent.filter(isLostStream).map(({ ts }) => ({ channel, ts }));
    if (lost.length === 0) return [];
    const taken = await otherTurnsShow(lost);
    return lost.filter(({ ts }) => taken.every((ref) => ref.ts !== ts));
  }

  return {
    markOf,
    async find(index, known) {
      const sinceMs = since - (isCommandKey(key) ? wrongClockMs : marginMs);
      // What was posted in the place of a known one is newer.
      const after = known[index]?.ts ?? (sinceMs / 1000).toFixed(6);
      const recent: SlackMessageInfo[] = [];
      for await (const message of api.messagesAfter(channel, thread, after)) recent.push(message);
      recent.sort((a, b) => Number(b.ts) - Number(a.ts));
      const isMarked = ({ metadata }: SlackMessageInfo) => metadata?.event_payload?.mark === markOf(index);
      const isUnknown = ({ ts }: SlackMessageInfo) => known.every((ref) => ref.ts !== ts);
      const marked = recent.filter(isMarked);
      if (marked.length > 0 || index < known.length) return marked.map(({ ts }) => ({ channel, ts }));
      return await findLostStreams(recent.filter(isUnknown));
    },
  };
}
