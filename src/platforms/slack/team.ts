import type { App } from "@slack/bolt";
import { LRUCache } from "lru-cache";
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
import { toTitle } from "../../support/title.ts";
import { createDeliveryScheduler, type DeliveryScheduler } from "../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import { parseShownFiles } from "../delivery/shown-files.ts";
import { createSuspensionWatch } from "../delivery/suspension-watch.ts";
import {
  parseMessageRef,
  toConversationId,
  toMessageKey,
  toReplyAddress,
  toThreadAddress,
  type SlackAddress,
} from "./address.ts";
import { registerActionForms } from "./action-forms.ts";
import { createAppHome } from "./app-home.ts";
import { registerAskShortcut } from "./ask-shortcut.ts";
import type { Bolt } from "./bolt.ts";
import { registerButtons } from "./buttons.ts";
import { createCallIntake } from "./call-intake.ts";
import { createCallerNotices } from "./caller-notices.ts";
import { createChannelLoad } from "./channel-load.ts";
import { createCommandCalls } from "./command-calls.ts";
import { registerCommands } from "./commands.ts";
import { createDeliveryCalls, createScheduledApi, lanes, limitOfLane } from "./delivery-calls.ts";
import { registerEvents } from "./events.ts";
import { registerFeedback } from "./feedback.ts";
import { isNotMember } from "./errors.ts";
import { createFallbackReply } from "./fallback-reply.ts";
import { createFiles, type Files } from "./files.ts";
import { registerForms } from "./forms.ts";
import { createIncoming } from "./incoming.ts";
import { withoutLookupTime } from "./lookup-time.ts";
import { cutText } from "./markdown.ts";
import { createMessageTarget, type MessageTarget } from "./message-target.ts";
import { createStreamSupport, defaultStreamLifeMs } from "./native-stream.ts";
import { createOrigins, type OriginOptions } from "./origin.ts";
import { createPeople, languageOf } from "./people.ts";
import { createPrivateReply } from "./private-reply.ts";
import { registerModelSelects } from "./model-select.ts";
import { createMessageReader } from "./read-message.ts";
import { createRoomReader } from "./read-room.ts";
import { createRefusalNotices } from "./refusal-notices.ts";
import { createReplacedMessages } from "./replaced-messages.ts";
import { createSessions } from "./sessions.ts";
import { speakToCallers } from "./speak-to-callers.ts";
import { createApiAccess, type TeamToken } from "./team-token.ts";
import { createThreadRoots, type ThreadRoots } from "./thread-roots.ts";
import { createSlackApi, type Identity, type MessageRef } from "./web-api.ts";
import { createWelcome, type WelcomeOptions } from "./welcome.ts";

/** What all workspaces share. */
export interface TeamSurroundings extends OriginOptions {
  readonly bolt: Bolt;
  readonly apiUrl: string;
  readonly commands: ReadonlyMap<string, Command>;
  /** Put before each command's name. */
  readonly commandPrefix: string;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly log: Log;
  readonly meter?: Pick<Meter, "delivery" | "platformLimited"> | undefined;
  /** How long a native stream may live; Slack ends it after five minutes. Default four. */
  readonly streamLifeMs?: number | undefined;
  /** How many people are remembered for each workspace. Default 5,000. */
  readonly maxPeople?: number | undefined;
  readonly memory: ReplyMemory;
  readonly clock: Clock;
  /** What must outlast the process. */
  readonly kept?: WelcomeOptions["kept"];
}

/** What is known of replies, by event keys, which name their workspace. */
export interface ReplyMemory {
  readonly roots: ThreadRoots;
  /** `response_url` of the last pressed confirm button. */
  readonly replaceUrls: LRUCache<string, string>;
  /** Keys of replies that another process may have begun. */
  readonly resumed: LRUCache<string, true>;
  /** Titles of the sessions that the first answers in threads create. */
  readonly titles: LRUCache<string, string>;
}

/** An empty memory. */
export function createReplyMemory(): ReplyMemory {
  return {
    roots: createThreadRoots(),
    replaceUrls: new LRUCache({ max: maxReplaceUrls }),
    resumed: new LRUCache({ max: maxResumed }),
    titles: new LRUCache({ max: maxResumed }),
  };
}

/** The bot in one workspace: its identity, its token, its limits, and what it shows there. */
export interface Team {
  readonly id: string;
  /** The user that the bot is there. */
  readonly botUserId: string;
  /** Handles what Slack delivers about this workspace. */
  readonly app: App;
  /** Calls that wait for room under the limits of this workspace. */
  readonly delivery: DeliveryScheduler;
  readonly download: Files["download"];
  readonly readRoom: NonNullable<Platform["readRoom"]>;
  openReply(address: SlackAddress, hooks: ReplyHooks): Reply;
  openThread(address: SlackAddress, title: string): Promise<OpenedThread>;
  /** Name of a channel. `undefined`: a direct message. */
  channelName(channel: string): Promise<string | undefined>;
  /** Never throws. */
  userName(user: string): Promise<string | undefined>;
  /** It is not in memory any more. Replies that are open go on. */
  release(): void;
  /** Removes no messages any more. */
  stop(): void;
  /** Aborts downloads. */
  close(): Promise<void>;
}

const maxReplaceUrls = 500;
/** Their final texts can all be posted before the first one of them is given up. */
const maxRepliesInChannel = 80;
const maxResumed = 2000;

/** The bot in the workspace of `identity`. Makes no call. */
export async function createTeam(
  identity: Identity,
  token: TeamToken,
  around: TeamSurroundings,
): Promise<Team> {
  const { bolt, apiUrl, commands, commandPrefix, receiver, history, clock, log, meter } = around;
  const { teamId } = identity;
  const suspensions = createSuspensionWatch(clock);
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
  const streams = createStreamSupport(log, clock);
  const load = createChannelLoad(maxRepliesInChannel);
  const { roots, replaceUrls, resumed, titles } = around.memory;
  const sessions = createSessions({ calls: shownCalls, scheduler: delivery, clock, log });
  const startedAt = clock.now();

  /** Whether a further answer in the channel could not be posted in time. */
  function isCrowded(channel: string): boolean {
    return load.isFull(channel) && delivery.waitMs(lanes.posts(channel), "first") > 0;
  }

  function targetAt(
    address: SlackAddress,
    { isResumed = false, otherTurnsShow }: Pick<ReplyHooks, "isResumed" | "otherTurnsShow">,
  ): MessageTarget {
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

  function register(app: App): void {
    speakToCallers(app, people);
    const origins = createOrigins(people, teamId, around);
    const refusals = createRefusalNotices(api, log, clock);
    const incoming = createIncoming({
      api,
      identity,
      people,
      read,
      languageOf: (userId) => languageOf(people, userId),
      origins,
      refusals,
      replaced,
      isCrowded,
      saveTitle: (key, title) => void titles.set(key, title),
      receiver,
      clock,
      log,
    });
    const calls = createCommandCalls({ api, identity, names: people, origins, read, receiver, clock });
    const intake = createCallIntake({ receiver, clock, log });
    const notices = createCallerNotices(api, log);
    const home = createAppHome({ api, origins, receiver, commands, commandPrefix, log });
    const { kept } = around;
    const welcome = createWelcome({
      api,
      identity,
      origins,
      receiver,
      languageOf: (userId) => languageOf(people, userId),
      kept,
      commandPrefix,
      clock,
      log,
    });
    registerEvents(app, { api, teamId, home, welcome, incoming, origins, refusals, receiver, history, log });
    const searchesModels = (): boolean => receiver.suggestModels("", { max: 1 }).length > 0;
    registerCommands(app, { commands, commandPrefix, teamId, api, calls, intake, notices, searchesModels });
    registerModelSelects(app, { receiver });
    registerAskShortcut(app, { commands, api, searchesModels, log });
    registerForms(app, { api, origins, receiver, notices, home });
    const saveReplaceUrl = (key: string, responseUrl: string) => void replaceUrls.set(key, responseUrl);
    registerActionForms(app, { teamId, clock, origins, receiver, intake, notices, saveReplaceUrl });
    registerFeedback(app, { teamId, origins, receiver, notices });
    registerButtons(app, {
      teamId,
      clock,
      api,
      origins,
      receiver,
      intake,
      notices,
      saveReplaceUrl,
    });
  }

  const app = await bolt.createApp(identity);
  register(app);
  return {
    id: teamId,
    botUserId: identity.userId,
    app,
    delivery,
    download: (attachment, options) => files.download(attachment, options),
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
    release: () => suspensions.stop(),
    stop() {
      suspensions.stop();
      replaced.close();
    },
    close: () => files.close(),
  };
}
