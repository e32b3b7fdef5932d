import { isParleyError } from "../../core/errors.ts";
import type { Json } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { EditTarget, MessageContent } from "../delivery/edit-target.ts";
import { isDirectMessages, parseMessageRef, type SlackAddress } from "./address.ts";
import { slackErrorCode } from "./errors.ts";
import { escapedBytes } from "./markdown.ts";
import { toPlainSection, toSlackContent } from "./message-blocks.ts";
import type { SlidingWindowLimiter } from "../../support/sliding-window-limiter.ts";
import type { MessageRef, SlackApi, SlackContent } from "./web-api.ts";

/** `chat.update` accepts 4,000 bytes of text; this leaves a margin. */
const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;
/** The placeholder says the same, so the status line is for slow answers only. */
const statusDelayMs = 1500;
/** A command's time comes from this machine's clock, a message's from Slack's. */
const clockSkewMs = 60_000;

/** What {@link createMessageTarget} needs. */
export interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly address: SlackAddress;
  /** An earlier process may have posted messages of this reply. */
  readonly isResumed: boolean;
  /** Limits edits in the workspace. */
  readonly edits: SlidingWindowLimiter;
  /** Limits posts in the channel. */
  readonly posts: SlidingWindowLimiter;
  /** Called after each post; the reply's first message can become a thread's root. */
  readonly onPost: (ref: MessageRef) => void;
  readonly log: Log;
}

/** Shows a reply in messages of a channel, thread or direct message. */
export function createMessageTarget(options: MessageTargetOptions): EditTarget {
  const { api, address, edits, posts, onPost } = options;
  const status = createStatusLine(options);
  /** Content last written to each message, as JSON by `ts`. */
  const shown = new Map<string, string>();
  let isInvitationRequested = false;
  let posted = address.refs?.length ?? 0;
  let mayBePosted = options.isResumed;

  /**
   * Slack has no idempotency key for posts, but keeps metadata (markdown blocks lose their block ids). If an earlier
   * post, maybe by an earlier process, had no response, it is searched for first.
   */
  async function post(content: SlackContent, signal: AbortSignal): Promise<MessageRef> {
    const mark = `${address.key}/${posted}`;
    if (mayBePosted) {
      const found = await findPost(mark);
      mayBePosted = options.isResumed;
      if (found !== undefined) {
        await api.update(found, content);
        return found;
      }
    }
    await posts.take(signal);
    try {
      return await api.post(address.channel, address.thread, content, mark);
    } catch (error) {
      mayBePosted ||= isParleyError(error, "platform-unreachable");
      throw error;
    }
  }

  async function findPost(mark: string): Promise<MessageRef | undefined> {
    const since = ((address.since - clockSkewMs) / 1000).toFixed(6);
    const recent = await api.messagesAfter(address.channel, address.thread, since);
    const message = recent.find(({ metadata }) => metadata?.event_payload?.mark === mark);
    return message === undefined ? undefined : { channel: address.channel, ts: message.ts };
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

  return {
    maxLength: maxMessageBytes,
    lengthOf: escapedBytes,
    maxMessages,
    minEditIntervalMs,
    async post(content: MessageContent, signal: AbortSignal): Promise<Json> {
      const wanted = toSlackContent(content);
      try {
        const ref = await post(wanted, signal);
        posted += 1;
        onPost(ref);
        shown.set(ref.ts, JSON.stringify(wanted));
        if (content.state === "waiting") status.showSoon();
        return { channel: ref.channel, ts: ref.ts };
      } catch (error) {
        await requestInvitation(error);
        throw error;
      }
    },
    async edit(ref: Json, content: MessageContent, signal: AbortSignal): Promise<Json> {
      const isFinal = content.state === "finished" || content.state === "failed";
      const message = parseMessageRef(ref);
      const wanted = toSlackContent(content);
      if (content.text !== "") status.clear();
      const json = JSON.stringify(wanted);
      // The last preview and the final content are often equal: an edit would only count against the limit.
      if (shown.get(message.ts) !== json) {
        // Under load a preview is skipped; the next edit contains its text.
        if (!isFinal && !edits.tryTake()) return ref;
        if (isFinal) await edits.take(signal);
        shown.delete(message.ts);
        await api.update(message, wanted);
        shown.set(message.ts, json);
      }
      if (isFinal) status.clear();
      return ref;
    },
    upload: (files) => api.upload(address.channel, address.thread, files),
  };
}

/**
 * The line "Parley is thinking…" below a thread in direct messages, after {@link statusDelayMs} without text. It is
 * optional: failures are only logged.
 */
function createStatusLine({ api, address, log }: MessageTargetOptions): { showSoon(): void; clear(): void } {
  const { channel, thread } = address;
  let timer: NodeJS.Timeout | undefined;
  let isShown = false;
  const show = (text: string): void => {
    if (thread === undefined) return;
    isShown = text !== "";
    api.setStatus(channel, thread, text).catch((error: unknown) => {
      log.debug({ err: error }, "optional Slack call failed");
    });
  };
  return {
    showSoon() {
      if (thread === undefined || !isDirectMessages(channel)) return;
      timer ??= setTimeout(show, statusDelayMs, "is thinking…").unref();
    },
    clear() {
      clearTimeout(timer);
      if (isShown) show("");
    },
  };
}
