import { randomUUID } from "node:crypto";
import { isParleyError } from "../../assistant/errors.ts";
import type { Json, Log } from "../../assistant/types.ts";
import type { EditTarget, MessageContent } from "../edit-target.ts";
import type { SlackAddress } from "./address.ts";
import { slackErrorOf } from "./errors.ts";
import { escapedBytes } from "./markdown.ts";
import { toSlackContent } from "./message-blocks.ts";
import type { Pace } from "./pace.ts";
import type { MessageRef, SlackApi, SlackContent } from "./web-api.ts";

/** `chat.update` takes 4,000 bytes of text; a little room is left. */
export const maxMessageBytes = 3900;
const maxMessages = 8;
const minEditIntervalMs = 1000;
/** How often a post is made that Slack did not answer to, after a look that it is not there. */
const maxPostAttempts = 3;

export interface MessageTargetOptions {
  readonly api: SlackApi;
  readonly address: SlackAddress;
  /** The workspace's limit on edits. */
  readonly edits: Pace;
  /** The channel's limit on posts. */
  readonly posts: Pace;
  /** Called with the first message, new or taken up again: it can become a thread's root. */
  readonly onFirst: (ref: MessageRef) => void;
  readonly log: Log;
}

/** Shows a reply in messages of a channel, thread or direct message. */
export function createMessageTarget(options: MessageTargetOptions): EditTarget {
  const { api, address, edits, posts, onFirst, log } = options;
  let isInvitationAsked = false;

  async function post(content: SlackContent): Promise<MessageRef> {
    // Slack has no key against double posts. A block's id does: it is looked for before trying again.
    const nonce = randomUUID();
    const [first = { type: "divider" }, ...rest] = content.blocks;
    const marked = { ...content, blocks: [{ ...first, block_id: nonce }, ...rest] };
    for (let attempt = 1; ; attempt += 1) {
      await posts.take({ isUrgent: true });
      try {
        return await api.post(address.channel, address.thread, marked);
      } catch (error) {
        if (attempt >= maxPostAttempts || !isParleyError(error)) throw error;
        if (error.retryAfterMs !== undefined) {
          await delay(error.retryAfterMs);
        } else if (error.code === "platform-unreachable") {
          const there = await find(nonce);
          if (there !== undefined) return there;
        } else {
          throw error;
        }
        log.debug({ attempt, code: error.code }, "a post is tried again");
      }
    }
  }

  async function find(nonce: string): Promise<MessageRef | undefined> {
    const recent = await api.messages(address.channel, { thread: address.thread, limit: 50 });
    const message = recent.find(({ blocks }) => blocks?.some((block) => block["block_id"] === nonce));
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
    async post(content: MessageContent): Promise<Json> {
      try {
        const ref = await post(toSlackContent(content));
        onFirst(ref);
        if (address.thread !== undefined && content.state === "waiting") showStatus(options, "is thinking…");
        return { channel: ref.channel, ts: ref.ts };
      } catch (error) {
        await askForInvitation(error);
        throw error;
      }
    },
    async edit(ref: Json, content: MessageContent): Promise<void> {
      const isFinal = content.state === "finished" || content.state === "failed";
      await edits.take({ isUrgent: isFinal });
      await api.update(readRef(ref), toSlackContent(content));
      if (isFinal && address.thread !== undefined) showStatus(options, "");
    },
    upload: (files) => api.upload(address.channel, address.thread, files),
  };
}

/** The line "Parley is thinking…" below a direct message's thread. It is a nicety: whether it works does not matter. */
function showStatus({ api, address, log }: MessageTargetOptions, status: string): void {
  if (address.thread === undefined || !address.channel.startsWith("D")) return;
  api.setStatus(address.channel, address.thread, status).catch((error: unknown) => {
    log.debug({ err: error }, "the status line was not set");
  });
}

/** A saved reference of {@link createMessageTarget}. */
export function readRef(ref: Json): MessageRef {
  const { channel, ts } = ref as { channel?: unknown; ts?: unknown };
  return { channel: String(channel), ts: String(ts) };
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
