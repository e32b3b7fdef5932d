import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import type { Json } from "../../core/events.ts";
import type {
  ConversationHistory,
  OpenedThread,
  Platform,
  Receiver,
  Reply,
  ReplyHooks,
} from "../../core/platform.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { toTitle } from "../../support/text.ts";
import {
  createDeliveryScheduler,
  type DeliveryScheduler,
  type SuspensionWatch,
} from "../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import { parseShownFiles } from "../delivery/message-plan.ts";
import {
  parseMessageRef,
  toConversationId,
  toMessageKey,
  toReplyAddress,
  toThreadAddress,
  type SlackAddress,
} from "./address.ts";
import { createAppHome, createWelcome } from "./press/app-home.ts";
import type { Bolt } from "./transport/bolt.ts";
import { createCallIntake } from "./intake/call-intake.ts";
import { createCommandCalls } from "./intake/commands.ts";
import { createDeliveryCalls, createScheduledApi, lanes, limitOfLane } from "./transport/delivery-calls.ts";
import { createFeature, isNotMember, withoutLookupTime } from "./errors.ts";
import { cutText } from "./reply/escape-markdown.ts";
import { createFiles } from "./intake/files.ts";
import { createIncoming } from "./intake/incoming.ts";
import { createApiAccess, type TeamToken } from "./install/installations.ts";
import { createReplacedMessages } from "./intake/message-changes.ts";
import { createMessageTarget } from "./reply/message-target.ts";
import { defaultStreamLifeMs } from "./reply/native-stream.ts";
import type { TeamHandlers } from "./transport/listeners.ts";
import { createCallerNotices, createRefusalNotices } from "./press/notices.ts";
import { createOrigins, type OriginOptions, createPeople, languageOf } from "./people.ts";
import { createFallbackReply, createPrivateReply } from "./reply/private-reply.ts";
import { createMessageReader } from "./intake/read-message.ts";
import { createRoomReader } from "./intake/read-room.ts";
import { createSessions } from "./reply/sessions.ts";
import { createSlackApi, type Identity, type MessageRef } from "./transport/web-api.ts";
import { createRecent, type Recent } from "../../support/recent.ts";

export interface TeamSurroundings extends OriginOptions {
  readonly bolt: Bolt;
  readonly apiUrl: string;
  readonly commands: ReadonlyMap<string, Command>;
  /** The prefix stands before each command's name. */
  readonly commandPrefix: string;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly log: Log;
  readonly meter?: Meter | undefined;
  /** A native stream may live so long. The default is four minutes; Slack ends it after five. */
  readonly streamLifeMs?: number | undefined;
  /** So many people are remembered for each workspace. The default is 5,000. */
  readonly maxPeople?: number | undefined;
  readonly memory: ReplyMemory;
  readonly suspensions: Pick<SuspensionWatch, "waitMs">;
  readonly clock: Clock;
  /** This must outlast the process. */
  readonly kept?: Parameters<typeof createWelcome>[0]["kept"];
}

/** This is known of replies by their event keys, which name their workspace. */
interface ReplyMemory {
  readonly roots: ThreadRoots;
  /** These are the `response_url`s of the last pressed confirm buttons. */
  readonly replaceUrls: Recent<string>;
  /** Another process may have begun the replies with these keys. */
  readonly resumed: Recent<true>;
  /** The first answers in threads create sessions with these titles. */
  readonly titles: Recent<string>;
}

export function createReplyMemory(): ReplyMemory {
  return {
    roots: createThreadRoots(),
    replaceUrls: createRecent(maxReplaceUrls),
    resumed: createRecent(maxResumed),
    titles: createRecent(maxResumed),
  };
}

/** This is the bot in one workspace: its identity, its token, its limits, and what it shows there. */
export interface Team {
  readonly id: string;
  readonly botUserId: string;
  /** The bot posts its messages under this id. */
  readonly botId: string;
  /** These handle what Slack delivers about this workspace. */
  readonly handlers: TeamHandlers;
  /** Calls wait here for room under the limits of this workspace. */
  readonly delivery: DeliveryScheduler;
  readonly download: ReturnType<typeof createFiles>["download"];
  readonly readRoom: NonNullable<Platform["readRoom"]>;
  /** Whether a further answer in the channel could not be posted in time. */
  isCrowded(channel: string): boolean;
  openReply(address: SlackAddress, hooks: ReplyHooks): Reply;
  openThread(address: SlackAddress, title: string): Promise<OpenedThread>;
  /** Resolves to the name of a channel, and to `undefined` for direct messages. */
  channelName(channel: string): Promise<string | undefined>;
  /** Resolves to the name of a user. It never throws. */
  userName(user: string): Promise<string | undefined>;
  /** Removes no messages any more. */
  stop(): void;
  /** Aborts downloads. */
  close(): Promise<void>;
}

const maxReplaceUrls = 500;
/** Slack waits three seconds for the acknowledgement of an invitation. */
const welcomeLookupMs = 2000;
/** Their final texts can all be posted before the first one of them is given up. */
const maxRepliesInChannel = 80;
const maxResumed = 2000;

/** Returns the bot in the workspace of `identity`. It makes no call. */
export function createTeam(identity: Identity, token: TeamToken, around: TeamSurroundings): Team {
  const { bolt, apiUrl, commands, commandPrefix, receiver, history, suspensions, clock, log, meter } = around;
  const { teamId } = identity;
  const delivery = createDeliveryScheduler({
    platform: "slack",
    limitOf: limitOfLane,
    suspensions,
    clock,
    ...(meter === undefined ? {} : { meter }),
  });
  const direct = createSlackApi(createApiAccess(bolt, token), log, clock);
  const api = createScheduledApi(direct, delivery, clock);
  const shownCalls = createDeliveryCalls(direct, delivery, clock);
  const replaced = createReplacedMessages(shownCalls, log, clock);
  const people = createPeople({ lookUp: (id) => api.userInfo(id), log, maxPeople: around.maxPeople, clock });
  const read = createMessageReader({ api, identity, names: people, log });
  const readRoom = createRoomReader({ api, identity, names: people, read, clock });
  const files = createFiles({ api, token: () => token.current(), apiUrl });
  const streams = createFeature("streams", log, clock);
  const load = createChannelLoad(maxRepliesInChannel);
  const { roots, replaceUrls, resumed, titles } = around.memory;
  const sessions = createSessions({ calls: shownCalls, scheduler: delivery, clock, log });
  const startedAt = clock.now();

  function isCrowded(channel: string): boolean {
    return load.isFull(channel) && delivery.waitMs(lanes.posts(channel), "final") > 0;
  }

  function targetAt(
    address: SlackAddress,
    { isResumed = false, otherTurnsShow }: Pick<ReplyHooks, "isResumed" | "otherTurnsShow">,
  ): ReturnType<typeof createMessageTarget> {
    return createMessageTarget({
      api,
      calls: shownCalls,
      scheduler: delivery,
      streams,
      replaced,
      identity,
      address,
      isResumed: isResumed || address.since < startedAt,
      async otherTurnsShow(refs) {
        const keyOf = ({ channel, ts }: MessageRef): string => toMessageKey(teamId, channel, ts);
        const taken = (await otherTurnsShow?.(refs.map(keyOf))) ?? [];
        return refs.filter((ref) => taken.includes(keyOf(ref)));
      },
      sessions,
      title: titles.get(address.key),
      streamLifeMs: around.streamLifeMs ?? defaultStreamLifeMs,
      onClose: load.enter(address.channel),
      onPost: (ref) => {
        roots.remember(address.key, ref.ts);
      },
      clock,
      log,
    });
  }

  const origins = createOrigins(people, teamId, around);
  const refusals = createRefusalNotices(api, log, clock);
  const languageOfUser = (userId: string) => languageOf(people, userId);
  const handlers: TeamHandlers = {
    api,
    teamId,
    clock,
    log,
    receiver,
    history,
    people,
    origins,
    refusals,
    incoming: createIncoming({
      api,
      identity,
      people,
      read,
      languageOf: languageOfUser,
      origins,
      refusals,
      replaced,
      saveTitle: (key, title) => void titles.set(key, title),
      receiver,
      clock,
      log,
    }),
    calls: createCommandCalls({ api, identity, names: people, origins, read, receiver, clock }),
    intake: createCallIntake({ receiver, clock, log }),
    notices: createCallerNotices(api, log),
    home: createAppHome({ api, origins, receiver, commands, commandPrefix, log }),
    welcome: createWelcome({
      api,
      identity,
      origins,
      receiver,
      // A welcome is worth the wait: nobody has asked for it.
      languageOf: (id) => withoutLookupTime(() => languageOf(people, id, welcomeLookupMs)),
      kept: around.kept,
      commandPrefix,
      clock,
      log,
    }),
    searchesModels: () => receiver.suggestModels("", { max: 1 }).length > 0,
    saveReplaceUrl: (key, responseUrl) => void replaceUrls.set(key, responseUrl),
  };
  return {
    id: teamId,
    botUserId: identity.userId,
    botId: identity.botId,
    handlers,
    delivery,
    download: (attachment, options) => files.download(attachment, options),
    isCrowded,
    readRoom: (address, query) => withoutLookupTime(() => readRoom(address, query)),
    openReply(address, hooks) {
      if (hooks.isResumed === true) resumed.set(address.key, true);
      if (address.isPrivate === true || address.isOutside === true)
        return createPrivateReply({ api, address, replaceUrl: replaceUrls.get(address.key), hooks, log });
      const [first] = address.refs ?? [];
      if (first !== undefined) roots.remember(address.key, parseMessageRef(first).ts);
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
          await hooks.saveAddress(toReplyAddress({ ...address, refs, ...shown }));
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
        conversationId: toConversationId(teamId, address.channel, root),
        address: toReplyAddress(toThreadAddress(address, root)),
        ...(isPeoples ? { isPeoples } : {}),
      };
    },
    channelName: (channel) => api.channelName(channel),
    userName: async (user) => (await withoutLookupTime(() => people.find(user)))?.name,
    stop: () => replaced.close(),
    close: () => files.close(),
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
