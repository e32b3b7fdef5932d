import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { toMarkdown } from "../delivery/reply-markdown.ts";
import type { Reply, ReplyHooks } from "../../core/platform.ts";
import { splitMarkdown } from "../delivery/split-markdown.ts";
import type { MessageContent } from "../delivery/edit-target.ts";
import { toReplyAddress, type SlackAddress } from "./address.ts";
import { escapedBytes } from "./markdown.ts";
import { toSlackContent } from "./message-blocks.ts";
import type { SlackApi, SlackContent } from "./web-api.ts";

/** Markdown blocks of a message hold 12,000 characters together. */
const maxPostLength = 11_000;
/** A `response_url` takes five posts: one is kept for "working on it". */
const maxPosts = 4;

export interface PrivateReplyOptions {
  readonly api: SlackApi;
  readonly address: SlackAddress;
  /** Where its button was pressed: the first thing that is shown takes the place of what stands there. */
  readonly replaceUrl: string | undefined;
  readonly hooks: ReplyHooks;
  readonly log: Log;
}

/**
 * A reply that only the caller of a command sees. Such messages cannot be edited, so it is shown when it is whole;
 * what goes beyond the five posts, or comes later than 30 minutes, and all files, go to the person's direct messages.
 */
export function createPrivateReply(options: PrivateReplyOptions): Reply {
  const { api, address, hooks, log } = options;
  let { replaceUrl } = options;
  let text = "";
  let filesSent = false;
  /** Pieces of the text that are shown: a failure after them does not show them again. */
  let shown = 0;
  let isOver = false;
  const abandoned = new AbortController();

  async function tell(content: SlackContent): Promise<void> {
    abandoned.signal.throwIfAborted();
    try {
      if (replaceUrl !== undefined) {
        const url = replaceUrl;
        replaceUrl = undefined;
        return await api.respond(url, content, { isReplacing: true });
      }
      if (address.responseUrl === undefined) return await writeToPerson(content);
      await api.respond(address.responseUrl, content);
    } catch (error) {
      if (isParleyError(error, "platform-unreachable")) throw error;
      log.debug({ err: error }, "a private answer goes to the direct messages");
      await writeToPerson(content);
    }
  }

  /** A user id in place of a channel means their direct messages with the bot. */
  async function writeToPerson(content: SlackContent): Promise<void> {
    abandoned.signal.throwIfAborted();
    await api.post(address.user, undefined, content);
  }

  async function show(last: Omit<MessageContent, "text">): Promise<void> {
    const pieces =
      text.trim() === "" ? [""] : splitMarkdown(text, { maxLength: maxPostLength, lengthOf: escapedBytes });
    for (const [index, piece] of pieces.entries()) {
      if (index < shown) continue;
      const isLast = index === pieces.length - 1;
      const content = toSlackContent(isLast ? { ...last, text: piece } : { state: last.state, text: piece });
      await (index < maxPosts - 1 || (isLast && index < maxPosts) ? tell(content) : writeToPerson(content));
      shown += 1;
    }
  }

  async function end(last: Omit<MessageContent, "text">): Promise<void> {
    if (isOver) return;
    isOver = true;
    try {
      await show(last);
    } catch (error) {
      // Whoever asked may still say that it failed.
      isOver = abandoned.signal.aborted;
      throw error;
    }
  }

  const notices = (given: readonly string[] = []) => [
    ...given,
    ...(filesSent ? ["The files are in your direct messages with me: they cannot be private here."] : []),
  ];

  return {
    async show() {
      if (address.isAnnounced !== true) {
        await tell(toSlackContent({ text: "", state: "waiting", status: "Working on it" }));
        await hooks.saveAddress(toReplyAddress({ ...address, isAnnounced: true }));
        return;
      }
      await hooks.saveAddress(toReplyAddress(address));
    },
    status() {},
    write(content) {
      if (!isOver) text = toMarkdown(content);
    },
    async attach(file) {
      if (isOver) return;
      const { channel, ts } = await api.post(
        address.user,
        undefined,
        toSlackContent({ text: "", state: "finished", notices: ["Files of your private command:"] }),
      );
      await api.upload(channel, ts, [file]);
      filesSent = true;
    },
    finish: (ending) => end({ state: "finished", ...ending, notices: notices(ending?.notices) }),
    fail: (failure) =>
      end({
        state: "failed",
        failure: failure.text,
        notices: notices(failure.notices),
        ...(failure.retryKey === undefined ? {} : { retryKey: failure.retryKey }),
      }),
    abandon() {
      isOver = true;
      abandoned.abort(new ParleyError("stopping", "the reply is left to whoever goes on with it"));
    },
  };
}
