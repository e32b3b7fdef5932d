import { isParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { EditTarget, MessageContent } from "../delivery/edit-target.ts";
import type { SlackAddress } from "./address.ts";
import { slackErrorOf } from "./errors.ts";
import { escapedBytes } from "./markdown.ts";
import { toSlackContent } from "./message-blocks.ts";
import type { SlidingWindowLimiter } from "../../support/sliding-window-limiter.ts";
import type { MessageRef, SlackApi, SlackContent } from "./web-api.ts";

/** `chat.update` takes 4,000 bytes of text; a little room is left. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;
/** The placeholder says the same; the status line is for answers that let people wait. */
const statusAfterMs = 1500;
/** A command's time is this machine's, a message's is Slack's. */
const clockSkewMs = 60_000;

export interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly address: SlackAddress;
  /** Whether an earlier process may have posted for it already. */
  readonly isResumed: boolean;
  /** The workspace's limit on edits. */
  readonly edits: SlidingWindowLimiter;
  /** The channel's limit on posts. */
  readonly posts: SlidingWindowLimiter;
  /** Called with the first message, new or taken up again: it can become a thread's root. */
  readonly onFirst: (ref: MessageRef) => void;
  readonly log: Log;
}

/** Shows a reply in messages of a channel, thread or direct message. */
export function createMessageTarget(options: MessageTargetOptions): EditTarget {
  const { api, address, edits, posts, onFirst } = options;
  const status = createStatusLine(options);
  /** What each message is known to show, as JSON. */
  const shown = new Map<string, string>();
  let isInvitationAsked = false;
  let posted = address.refs?.length ?? 0;
  let isUnsure = options.isResumed;

  /**
   * Slack takes no key against double posts, but keeps metadata (block ids it does not: markdown blocks lose theirs).
   * Where an earlier post was not answered, in an earlier process perhaps, it is looked for first.
   */
  async function post(content: SlackContent, signal: AbortSignal): Promise<MessageRef> {
    const mark = `${address.key}/${posted}`;
    if (isUnsure) {
      const there = await find(mark);
      isUnsure = options.isResumed;
      if (there !== undefined) {
        await api.update(there, content);
        return there;
      }
    }
    await posts.take(signal);
    try {
      return await api.post(address.channel, address.thread, content, mark);
    } catch (error) {
      isUnsure ||= isParleyError(error, "platform-unreachable");
      throw error;
    }
  }

  async function find(mark: string): Promise<MessageRef | undefined> {
    const since = ((address.since - clockSkewMs) / 1000).toFixed(6);
    const recent = await api.messagesAfter(address.channel, address.thread, since);
    const message = recent.find(({ metadata }) => metadata?.event_payload?.mark === mark);
    return message === undefined ? undefined : { channel: address.channel, ts: message.ts };
  }

  /** Tells a command's caller what only they can mend: no one else can see it, since the bot is not in there. */
  async function askForInvitation(error: unknown): Promise<void> {
    const word = slackErrorOf(error);
    if (word !== "not_in_channel" && word !== "channel_not_found") return;
    if (address.responseUrl === undefined || isInvitationAsked) return;
    isInvitationAsked = true;
    const text =
      "I am not in this channel, so I cannot answer here. Add me with /invite, or write to me directly.";
    await api.respond(address.responseUrl, {
      text,
      blocks: [{ type: "section", text: { type: "plain_text", text } }],
    });
  }

  return {
    maxLength: maxMessageBytes,
    lengthOf: escapedBytes,
    maxMessages,
    minEditIntervalMs,
    async post(content: MessageContent, signal: AbortSignal): Promise<Json> {
      const drawn = toSlackContent(content);
      try {
        const ref = await post(drawn, signal);
        posted += 1;
        onFirst(ref);
        shown.set(ref.ts, JSON.stringify(drawn));
        if (content.state === "waiting") status.showSoon();
        return { channel: ref.channel, ts: ref.ts };
      } catch (error) {
        await askForInvitation(error);
        throw error;
      }
    },
    async edit(ref: Json, content: MessageContent, signal: AbortSignal): Promise<void> {
      const isFinal = content.state === "finished" || content.state === "failed";
      const place = readRef(ref);
      const drawn = toSlackContent(content);
      if (content.text !== "") status.clear();
      const wanted = JSON.stringify(drawn);
      // The last words of an answer and its end often look the same: that edit would only use up the limit.
      if (shown.get(place.ts) !== wanted) {
        // Where there is much to edit, a growing reply is shown a little later; the next edit has more in it.
        if (!isFinal && !edits.tryTake()) return;
        if (isFinal) await edits.take(signal);
        shown.delete(place.ts);
        await api.update(place, drawn);
        shown.set(place.ts, wanted);
      }
      if (isFinal) status.clear();
    },
    upload: (files) => api.upload(address.channel, address.thread, files),
  };
}

/**
 * The line "Parley is thinking…" below a direct message's thread, where the model takes its time: two calls that a
 * quick answer does without. It is a nicety; whether it works does not matter.
 */
function createStatusLine({ api, address, log }: MessageTargetOptions): { showSoon(): void; clear(): void } {
  const { channel, thread } = address;
  let timer: NodeJS.Timeout | undefined;
  let isShown = false;
  const show = (text: string): void => {
    if (thread === undefined) return;
    isShown = text !== "";
    api.setStatus(channel, thread, text).catch((error: unknown) => {
      log.debug({ err: error }, "the status line was not set");
    });
  };
  return {
    showSoon() {
      if (thread === undefined || !channel.startsWith("D")) return;
      timer ??= setTimeout(show, statusAfterMs, "is thinking…").unref();
    },
    clear() {
      clearTimeout(timer);
      if (isShown) show("");
    },
  };
}

/** A saved reference of {@link createMessageTarget}. */
export function readRef(ref: Json): MessageRef {
  const { channel, ts } = ref as { channel?: unknown; ts?: unknown };
  return { channel: String(channel), ts: String(ts) };
}
