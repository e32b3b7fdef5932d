import type { Clock } from "../../../core/clock.ts";
import type { Json } from "../../../core/events.ts";
import type { OpenedThread } from "../../../core/platform.ts";
import type { Reply, ReplyHooks } from "../../../core/reply.ts";
import type { Log } from "../../../core/telemetry.ts";
import { createRecent, type Recent } from "../../../support/recent.ts";
import { inTime } from "../../../support/clock.ts";
import { toTitle } from "../../../support/text.ts";
import { createEditingReply } from "../../delivery/editing-reply.ts";
import type { Limits } from "../../delivery/limits.ts";
import { parseShownFiles } from "../../delivery/message-plan.ts";
import { retryPlatformCall } from "../../delivery/receive-patiently.ts";
import {
  parseMessageRef,
  toConversationId,
  toReplyAddress,
  toThreadAddress,
  type SlackAddress,
  type MessageRef,
} from "../address.ts";
import { createFeature, isBarred } from "../errors.ts";
import { lanes } from "../transport/lanes.ts";
import type { Identity } from "../transport/call.ts";
import type { SlackApi } from "../transport/web-api.ts";
import { cutText } from "./escape-markdown.ts";
import { createMessageTarget } from "./message-target.ts";
import { createFallbackReply, createPrivateReply } from "./private-reply.ts";
import { createSessions } from "./sessions.ts";

/** What the replies in all workspaces share: what is known of them by their event keys. */
export interface ReplyMemory {
  readonly roots: ReturnType<typeof createThreadRoots>;
  /** These are the `response_url`s of the last pressed confirm buttons. */
  readonly replaceUrls: Recent<string>;
  /** Another process may have begun the replies with these keys. */
  readonly resumed: Recent<true>;
  /** The first answers in threads create sessions with these titles. */
  readonly titles: Recent<string>;
  /** Replies to what was sent before this may have been begun by another process. */
  readonly startedAt: number;
}

export function createReplyMemory(clock: Clock): ReplyMemory {
  return {
    roots: createThreadRoots(),
    replaceUrls: createRecent(maxReplaceUrls),
    resumed: createRecent(maxResumed),
    titles: createRecent(maxResumed),
    startedAt: clock.now(),
  };
}

const maxReplaceUrls = 500;
/** Their final texts can all be posted before the first one of them is given up. */
const maxRepliesInChannel = 80;
const maxResumed = 2000;

/** Returns what opens replies and threads in one workspace. */
export function createSlackReplies(options: {
  readonly api: SlackApi;
  readonly limits: Limits;
  readonly identity: Identity;
  readonly memory: ReplyMemory;
  readonly clock: Clock;
  readonly log: Log;
}) {
  const { api, limits, identity, clock, log } = options;
  const streams = createFeature("streams", log, clock);
  const load = createChannelLoad(maxRepliesInChannel);
  const { roots, replaceUrls, resumed, titles } = options.memory;
  const replaced = createReplacedMessages(api, log, clock);
  const sessions = createSessions({ api, clock, log });

  function targetAt(address: SlackAddress, isResumed: boolean) {
    return createMessageTarget({
      ...options,
      removeMessages: (refs) => replaced.remove(refs),
      streams,
      address,
      isResumed: isResumed || address.since < options.memory.startedAt,
      sessions,
      title: titles.get(address.key),
      onClose: load.enter(address.channel),
      onPost: (ref) => {
        roots.remember(address.key, ref.ts);
      },
    });
  }

  return {
    replaced,
    openReply(address: SlackAddress, hooks: ReplyHooks): Reply {
      if (hooks.isResumed === true) resumed.set(address.key, true);
      if (address.isPrivate === true || address.isOutside === true)
        return createPrivateReply({
          api,
          address,
          replaceUrl: replaceUrls.get(address.key),
          hooks,
          clock,
          log,
        });
      const [first] = address.refs ?? [];
      if (first !== undefined) roots.remember(address.key, first.ts);
      const { responseUrl, ...withoutUrl } = address;
      const hasShown = (address.refs ?? []).length > 0;
      const isFromCommand = responseUrl !== undefined && !hasShown;
      const target = targetAt(isFromCommand ? withoutUrl : address, hooks.isResumed === true);
      const reply = createEditingReply({
        target,
        ...(address.refs === undefined ? {} : { savedRefs: address.refs }),
        isCalm: hooks.isCalm === true,
        isEndOnly: hooks.isEndOnly === true,
        stop: hooks.stop,
        savedFiles: parseShownFiles(address.files),
        async saveRefs(refs: readonly Json[], files) {
          const shown = files === undefined ? {} : { files: { ...files } };
          await hooks.saveAddress(toReplyAddress({ ...address, refs: refs.map(parseMessageRef), ...shown }));
          await target.saved();
        },
        isFresh: () => hooks.isFresh?.() !== false,
        clock,
        log,
      });
      if (!isFromCommand) return reply;
      return createFallbackReply(reply, {
        isUseless: isBarred,
        createOther() {
          log.info({ channel: address.channel }, "cannot post in the channel: answering through the command");
          const outside = { ...address, isOutside: true, isAnnounced: false };
          return createPrivateReply({ api, address: outside, replaceUrl: undefined, hooks, clock, log });
        },
      });
    },
    async openThread(address: SlackAddress, title: string): Promise<OpenedThread> {
      const post = async (): Promise<string> => {
        const content = { text: `**${cutText(title, 200)}**`, state: "finished" } as const;
        const target = targetAt(address, resumed.has(address.key));
        try {
          return parseMessageRef(
            await target.post(content, { urgency: "final", signal: new AbortController().signal }),
          ).ts;
        } finally {
          target.close?.(false);
        }
      };
      const root = address.thread ?? (await roots.open(address.key, post));
      titles.set(toThreadAddress(address, root).key, toTitle(title));
      // A mention at the top level of a channel is the root of its own thread.
      const isPeoples = address.thread !== undefined && !address.key.endsWith(`:${root}`);
      return {
        conversationId: toConversationId(identity.teamId, address.channel, root),
        address: toReplyAddress(toThreadAddress(address, root)),
        ...(isPeoples ? { isPeoples } : {}),
      };
    },
    /** Returns whether a further answer in the channel could not be posted in time. */
    isCrowded: (channel: string): boolean =>
      load.isFull(channel) && limits.waitMs(lanes.posts(channel), "final") > 0,
  };
}

const maxRoots = 2000;

/**
 * Keeps the roots of the last 2,000 replies, so that the same command never opens two threads. A reply that
 * is resumed after a restart calls `remember` again with its saved address.
 */
function createThreadRoots() {
  const roots = createRecent<Promise<string>>(maxRoots);
  return {
    /** Records that the reply with this key has its first message at `ts`. Later calls change nothing. */
    remember(key: string, ts: string): void {
      if (!roots.has(key)) roots.set(key, Promise.resolve(ts));
    },
    /**
     * Returns the root for `key`: the reply's first message, otherwise the one that `post` creates.
     * Concurrent calls share one `post`, and a failed one is called again next time.
     */
    async open(key: string, post: () => Promise<string>): Promise<string> {
      const known = roots.get(key);
      if (known !== undefined) return await known;
      const posted = post();
      roots.set(key, posted);
      try {
        return await posted;
      } catch (error) {
        roots.delete(key);
        throw error;
      }
    },
  };
}

/**
 * Counts how many replies are being shown in each channel.
 * @param most is the number of replies at the same time in one channel
 */
function createChannelLoad(most: number) {
  const counts = new Map<string, number>();
  return {
    /** Counts a reply, and returns a function that ends its part. Further calls of that have no effect. */
    enter(channel: string): () => void {
      counts.set(channel, (counts.get(channel) ?? 0) + 1);
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        const left = (counts.get(channel) ?? 1) - 1;
        if (left === 0) counts.delete(channel);
        else counts.set(channel, left);
      };
    },
    /** Returns whether a post a second in a channel is too little for all their final texts. */
    isFull: (channel: string): boolean => (counts.get(channel) ?? 0) >= most,
  };
}

/** The end of a reply waits so long for the removal of its previews. */
const removalWithinMs = 5000;
/** What Slack has not removed by then is left. */
const removedWithinMs = 5 * 60_000;
const maxRemoved = 2000;

/** Returns what removes messages of this bot in whose place others were posted. */
function createReplacedMessages(api: Pick<SlackApi, "remove">, log: Log, clock: Clock) {
  const own = createRecent(maxRemoved);
  const closing = new AbortController();
  const { signal } = closing;

  async function removeOne(ref: MessageRef): Promise<void> {
    try {
      await retryPlatformCall(
        () => api.remove(ref, { urgency: "final", withinMs: removalWithinMs, signal }),
        clock.monotonic() + removedWithinMs,
        signal,
        clock,
      );
    } catch (error) {
      log.debug({ channel: ref.channel, err: error }, "replaced message not removed");
    }
  }

  return {
    /**
     * Removes messages that no saved address contains any more. It resolves when that is done or has taken
     * five seconds; what is left then is removed later. It never rejects.
     */
    async remove(refs: readonly MessageRef[]): Promise<void> {
      for (const { ts } of refs) own.set(ts, true);
      if (refs.length > 0) await inTime(Promise.all(refs.map(removeOne)), removalWithinMs, { clock });
    },
    /** Returns whether the bot has removed that message itself, so that no person has deleted an answer. */
    isOwn: (ts: string): boolean => own.has(ts),
    /** Removes nothing more. */
    close: () => closing.abort(),
  };
}
