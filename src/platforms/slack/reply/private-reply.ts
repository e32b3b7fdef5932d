import type { Clock } from "../../../core/clock.ts";
import { isParleyError, ParleyError } from "../../../core/errors.ts";
import type { Reply, ReplyContent, ReplyHooks } from "../../../core/reply.ts";
import type { Log } from "../../../core/telemetry.ts";
import { retry } from "../../../support/retry.ts";
import { translate } from "../../../words/translate.ts";
import { withEnding, type Ending, type MessageContent } from "../../delivery/message-plan.ts";
import { toMarkdown, splitMarkdown } from "../../delivery/split-markdown.ts";
import { toReplyAddress, type MessageRef, type SlackAddress } from "../address.ts";
import { isLimited } from "../transport/lanes.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { escapedBytes } from "./escape-markdown.ts";
import { bytesOfSource, sendInForm, toPlainContent } from "./message-blocks.ts";

/** The markdown blocks of a message hold 12,000 characters together. */
const maxPostBytes = 11_000;
/** A `response_url` accepts five posts, of which one is reserved for "Working on it". */
const maxPosts = 4;
/** A post that Slack does not take because there are too many is repeated for so long. */
const limitedMs = 120_000;
const neverSent: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"]);

interface PrivateReplyOptions {
  readonly api: SlackApi;
  readonly address: SlackAddress;
  /** This is the `response_url` of a pressed button. The first post replaces the button's message. */
  readonly replaceUrl: string | undefined;
  readonly hooks: ReplyHooks;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Shows a reply through a `response_url`: only the caller of a command sees it, or all do where the bot is
 * not in the channel. Slack cannot edit ephemeral messages, so that the text is shown when it is complete,
 * and each piece is posted at most once: where it is not known whether one was shown, a note says so. The
 * person's direct messages are used without a `response_url`, beyond its posts or its 30 minutes, and for all
 * files.
 */
export function createPrivateReply(options: PrivateReplyOptions): Reply {
  const { api, address, hooks, clock, log } = options;
  const inThread = address.privateThread === undefined ? {} : { thread: address.privateThread };
  let { replaceUrl } = options;
  let text = "";
  let filesSent = false;
  /** It is saved before each piece. A pressed button begins a new reply. */
  let begun = hooks.isResumed === true && replaceUrl === undefined ? (address.begun ?? 0) : 0;
  /** Whether the last piece that was begun may be missing. */
  let isUnclear = begun !== "all" && begun > 0;
  let isOver = false;
  const abandoned = new AbortController();

  async function post(content: MessageContent): Promise<void> {
    if (hooks.isFresh?.() === false) abandon();
    abandoned.signal.throwIfAborted();
    try {
      if (replaceUrl !== undefined) {
        const url = replaceUrl;
        replaceUrl = undefined;
        const isPublic = address.isOutside === true;
        return await sendInForm(content, (wanted) =>
          api.respond(url, wanted, { isReplacing: true, ...inThread, isPublic }),
        );
      }
      const { responseUrl } = address;
      if (responseUrl === undefined) return void (await postDirectly(content));
      // Failures and signs of work are for the caller.
      const isPublic = address.isOutside === true && content.state === "finished";
      await sendInForm(content, (wanted) => api.respond(responseUrl, wanted, { ...inThread, isPublic }));
    } catch (error) {
      if (isParleyError(error, "platform-unreachable")) throw error;
      log.debug({ err: error }, "response_url failed; posting to direct messages");
      await postDirectly(content);
    }
  }

  async function postDirectly(content: MessageContent): Promise<MessageRef> {
    return await whileLimited(() =>
      sendInForm(content, (wanted) => api.post(address.user, undefined, wanted)),
    );
  }

  /** Repeats a call that had no effect because Slack got too many. Nothing else is repeated. */
  async function whileLimited<T>(call: () => Promise<T>): Promise<T> {
    return await retry(call, {
      deadline: clock.monotonic() + limitedMs,
      delayMs: (error) => (isLimited(error) ? error.retryAfterMs : undefined),
      signal: abandoned.signal,
      clock,
    });
  }

  async function announce(): Promise<void> {
    if (address.responseUrl !== undefined)
      return await post({ text: "", state: "waiting", status: translate("delivery.working") });
    try {
      const content = toPlainContent(translate("slack.elsewhere"));
      await api.postEphemeral(address.channel, address.thread, address.user, content);
    } catch (error) {
      log.debug({ err: error }, "optional Slack call failed");
    }
  }

  async function showText(last: Ending): Promise<void> {
    const contents = begun === "all" ? [] : toMessages(text, last);
    for (const [index, content] of contents.entries()) {
      if (begun === "all" || index < begun) continue;
      const isLast = index === contents.length - 1;
      abandoned.signal.throwIfAborted();
      await save(index + 1);
      try {
        await (index < maxPosts - 1 || (isLast && index < maxPosts) ? post(content) : postDirectly(content));
      } catch (error) {
        isUnclear ||= mayBeShown(error);
        if (!mayBeShown(error) && !abandoned.signal.aborted) await save(index);
        throw error;
      }
    }
    if (isUnclear) await post({ text: "", state: "finished", notices: [translate("slack.unclear")] });
    await save(last.state === "failed" ? 0 : "all");
  }

  async function save(count: typeof begun): Promise<void> {
    begun = count;
    const marked = toReplyAddress({ ...address, isAnnounced: true, begun });
    await hooks.saveAddress(marked, { isDurable: true });
  }

  async function end(last: Ending): Promise<void> {
    if (isOver) return;
    isOver = true;
    try {
      await showText(last);
    } catch (error) {
      // A failed `finish` may be followed by `fail`.
      isOver = abandoned.signal.aborted;
      throw error;
    }
  }

  function abandon(): void {
    isOver = true;
    abandoned.abort(new ParleyError("stopping", "the reply was abandoned"));
  }

  const withFileNotice = (notices: readonly string[] = []) => [
    ...notices,
    ...(filesSent && address.responseUrl !== undefined
      ? [translate(address.isOutside === true ? "slack.files-outside" : "slack.files-elsewhere")]
      : []),
  ];

  return {
    async show() {
      const isNew = address.isAnnounced !== true;
      if (isNew) await announce();
      await save(begun);
    },
    status() {},
    write(content) {
      if (!isOver) text = toMarkdown(content);
    },
    async attach(file) {
      if (isOver) return;
      const filesTitle = translate(address.isOutside === true ? "slack.files-of-command" : "slack.files");
      const { channel, ts } = await postDirectly({ text: "", state: "finished", notices: [filesTitle] });
      const files = [file];
      await whileLimited(() => api.upload(channel, ts, files));
      filesSent = true;
    },
    finish: (ending) => end({ state: "finished", ...ending, notices: withFileNotice(ending?.notices) }),
    async fail(failure) {
      await end({
        state: "failed",
        failure: failure.text,
        notices: withFileNotice(failure.notices),
        ...(failure.sources === undefined ? {} : { sources: failure.sources }),
        ...(failure.retryKey === undefined ? {} : { retryKey: failure.retryKey }),
      });
    },
    abandon,
  };
}

/** The posts that show a whole text, with what is below it. */
export function toMessages(markdown: string, ending: Ending): MessageContent[] {
  const measures = { maxLength: maxPostBytes, lengthOf: escapedBytes, lengthOfSource: bytesOfSource };
  return withEnding(markdown.trim() === "" ? [""] : splitMarkdown(markdown, measures), ending, measures);
}

/** Whether Slack may have shown a post that failed: there was no response, or one that says nothing. */
function mayBeShown(error: unknown): boolean {
  return isParleyError(error, "platform-unreachable") && !isLimited(error) && !wasNeverSent(error);
}

/** Returns whether there was no connection to send the post on. */
function wasNeverSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return (code !== undefined && neverSent.has(code)) || wasNeverSent(error.cause);
}

/**
 * Returns a reply that goes on as another one where the first cannot show anything. The function `isUseless`
 * says so of the error of a call, which is then made on the other reply. The first reply must have shown
 * nothing yet.
 */
export function createFallbackReply(
  first: Reply,
  {
    isUseless,
    createOther,
  }: { readonly isUseless: (error: unknown) => boolean; readonly createOther: () => Reply },
): Reply {
  let current = first;
  let written: ReplyContent | undefined;
  let switching: Promise<void> | undefined;
  let isAbandoned = false;

  async function change(): Promise<void> {
    first.abandon();
    current = createOther();
    if (isAbandoned) current.abandon();
    await current.show();
    if (written !== undefined) current.write(written);
  }

  async function attempt(work: (reply: Reply) => Promise<void>): Promise<void> {
    const tried = current;
    try {
      await work(tried);
    } catch (error) {
      if (isAbandoned || tried !== first || (current === first && !isUseless(error))) throw error;
      switching ??= change();
      await switching;
      await work(current);
    }
  }

  return {
    // The other reply is shown when it takes over.
    show: () => attempt(async (reply) => await (reply === first ? reply.show() : undefined)),
    status: (text, options) => current.status(text, options),
    write(content) {
      written = content;
      current.write(content);
    },
    attach: (file) => attempt((reply) => reply.attach(file)),
    finish: (ending) => attempt((reply) => reply.finish(ending)),
    fail: (failure) => attempt((reply) => reply.fail(failure)),
    abandon() {
      isAbandoned = true;
      current.abandon();
    },
  };
}

/** Returns a reply that is opened when its workspace is loaded. What is written before is shown then. */
export function createLateReply(open: () => Promise<Reply>): Reply {
  let reply: Reply | undefined;
  let opening: Promise<Reply> | undefined;
  let written: ReplyContent | undefined;
  let status: Parameters<Reply["status"]> | undefined;
  let isAbandoned = false;

  /** Opens the reply once. A failure is that of the call that needs it, and the next call tries again. */
  function opened(): Promise<Reply> {
    opening ??= open().then(
      (found) => {
        reply = found;
        if (status !== undefined) found.status(...status);
        if (written !== undefined) found.write(written);
        if (isAbandoned) found.abandon();
        return found;
      },
      (error: unknown) => {
        opening = undefined;
        throw error;
      },
    );
    return opening;
  }

  return {
    show: async () => await (await opened()).show(),
    status(...args) {
      status = args;
      reply?.status(...args);
    },
    write(content) {
      written = content;
      reply?.write(content);
    },
    attach: async (file) => await (await opened()).attach(file),
    finish: async (ending) => await (await opened()).finish(ending),
    fail: async (failure) => await (await opened()).fail(failure),
    abandon() {
      isAbandoned = true;
      reply?.abandon();
    },
  };
}
