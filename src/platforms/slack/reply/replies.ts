import type { Clock } from "../../../core/clock.ts";
import type { Json } from "../../../core/events.ts";
import type { OpenedThread, Reply, ReplyHooks } from "../../../core/platform.ts";
import type { Log } from "../../../core/telemetry.ts";
import { createRecent, type Recent } from "../../../support/recent.ts";
import { toTitle } from "../../../support/text.ts";
import {
  createSuspensionWatch,
  type DeliveryScheduler,
  type SuspensionWatch,
} from "../../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../../delivery/editing-reply.ts";
import { parseShownFiles } from "../../delivery/message-plan.ts";
import {
  parseMessageRef,
  toConversationId,
  toMessageKey,
  toReplyAddress,
  toThreadAddress,
  type SlackAddress,
  type MessageRef,
} from "../address.ts";
import { createFeature, isNotMember } from "../errors.ts";
import type { ReplacedMessages } from "../intake/message-changes.ts";
import { lanes } from "../transport/limits.ts";
import type { Identity, SlackApi } from "../transport/web-api.ts";
import { cutText } from "./escape-markdown.ts";
import { createMessageTarget } from "./message-target.ts";
import { defaultStreamLifeMs } from "./native-stream.ts";
import { createFallbackReply, createPrivateReply } from "./private-reply.ts";
import { createSessions } from "./sessions.ts";

/** What the replies in all workspaces share: what is known of them by their event keys, and the watch. */
export interface ReplyMemory {
  readonly roots: ThreadRoots;
  /** These are the `response_url`s of the last pressed confirm buttons. */
  readonly replaceUrls: Recent<string>;
  /** Another process may have begun the replies with these keys. */
  readonly resumed: Recent<true>;
  /** The first answers in threads create sessions with these titles. */
  readonly titles: Recent<string>;
  readonly suspensions: SuspensionWatch;
}

export function createReplyMemory(clock: Clock): ReplyMemory {
  return {
    roots: createThreadRoots(),
    replaceUrls: createRecent(maxReplaceUrls),
    resumed: createRecent(maxResumed),
    titles: createRecent(maxResumed),
    suspensions: createSuspensionWatch(clock),
  };
}

const maxReplaceUrls = 500;
/** Their final texts can all be posted before the first one of them is given up. */
const maxRepliesInChannel = 80;
const maxResumed = 2000;

/** Opens replies and threads in one workspace. */
interface Replies {
  openReply(address: SlackAddress, hooks: ReplyHooks): Reply;
  openThread(address: SlackAddress, title: string): Promise<OpenedThread>;
  /** Whether a further answer in the channel could not be posted in time. */
  isCrowded(channel: string): boolean;
}

export function createReplies(options: {
  readonly api: SlackApi;
  readonly scheduler: DeliveryScheduler;
  readonly replaced: ReplacedMessages;
  readonly identity: Identity;
  readonly memory: ReplyMemory;
  readonly streamLifeMs?: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}): Replies {
  const { api, scheduler, identity, clock, log } = options;
  const streams = createFeature("streams", log, clock);
  const load = createChannelLoad(maxRepliesInChannel);
  const { roots, replaceUrls, resumed, titles, suspensions } = options.memory;
  const sessions = createSessions({ api, scheduler, clock, log });
  const startedAt = clock.now();

  function targetAt(
    address: SlackAddress,
    { isResumed = false, otherTurnsShow }: Pick<ReplyHooks, "isResumed" | "otherTurnsShow">,
  ): ReturnType<typeof createMessageTarget> {
    return createMessageTarget({
      ...options,
      streams,
      address,
      isResumed: isResumed || address.since < startedAt,
      async otherTurnsShow(refs) {
        const keyOf = ({ channel, ts }: MessageRef): string => toMessageKey(identity.teamId, channel, ts);
        const taken = (await otherTurnsShow?.(refs.map(keyOf))) ?? [];
        return refs.filter((ref) => taken.includes(keyOf(ref)));
      },
      sessions,
      title: titles.get(address.key),
      streamLifeMs: options.streamLifeMs ?? defaultStreamLifeMs,
      onClose: load.enter(address.channel),
      onPost: (ref) => {
        roots.remember(address.key, ref.ts);
      },
    });
  }

  return {
    openReply(address, hooks) {
      if (hooks.isResumed === true) resumed.set(address.key, true);
      if (address.isPrivate === true || address.isOutside === true)
        return createPrivateReply({ api, address, replaceUrl: replaceUrls.get(address.key), hooks, log });
      const [first] = address.refs ?? [];
      if (first !== undefined) roots.remember(address.key, first.ts);
      const { responseUrl, ...withoutUrl } = address;
      const hasShown = (address.refs ?? []).length > 0;
      const isFromCommand = responseUrl !== undefined && !hasShown;
      const target = targetAt(isFromCommand ? withoutUrl : address, hooks);
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
        suspensions,
        clock,
        log,
      });
      if (!isFromCommand) return reply;
      return createFallbackReply(reply, {
        isUseless: isNotMember,
        createOther() {
          log.info({ channel: address.channel }, "not in the channel: answering through the command");
          const outside = { ...address, isOutside: true, isAnnounced: false };
          return createPrivateReply({ api, address: outside, replaceUrl: undefined, hooks, log });
        },
      });
    },
    async openThread(address, title) {
      const post = async (): Promise<string> => {
        const content = { text: `**${cutText(title, 200)}**`, state: "finished" } as const;
        const target = targetAt(address, { isResumed: resumed.has(address.key) });
        try {
          return parseMessageRef(await target.post(content, new AbortController().signal, "final")).ts;
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
    isCrowded: (channel) => load.isFull(channel) && scheduler.waitMs(lanes.posts(channel), "final") > 0,
  };
}

/** These are the root messages of the threads that commands open. */
interface ThreadRoots {
  /** Records that the reply with this key has its first message at `ts`. Later calls change nothing. */
  remember(key: string, ts: string): void;
  /**
   * Returns the root for `key`: the reply's first message, otherwise the one that `post` creates. Concurrent
   * calls share one `post`, and a failed one is called again next time.
   */
  open(key: string, post: () => Promise<string>): Promise<string>;
}

const maxRoots = 2000;

/**
 * Keeps the roots of the last 2,000 replies, so that the same command never opens two threads. A reply that
 * is resumed after a restart calls `remember` again with its saved address.
 */
function createThreadRoots(): ThreadRoots {
  const roots = createRecent<Promise<string>>(maxRoots);
  return {
    remember(key, ts) {
      if (!roots.has(key)) roots.set(key, Promise.resolve(ts));
    },
    async open(key, post) {
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

/** This counts how many replies are being shown in each channel. */
interface ChannelLoad {
  /** Counts a reply, and returns a function that ends its part. Further calls of that have no effect. */
  enter(channel: string): () => void;
  /** Returns whether a post a second in a channel is too little for all their final texts. */
  isFull(channel: string): boolean;
}

/**
 * Counts replies.
 * @param most is the number of replies at the same time in one channel
 */
function createChannelLoad(most: number): ChannelLoad {
  const counts = new Map<string, number>();
  return {
    enter(channel) {
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
    isFull: (channel) => (counts.get(channel) ?? 0) >= most,
  };
}
