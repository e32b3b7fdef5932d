import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import type { ConversationHistory, Platform, Receiver } from "../../core/platform.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { createDeliveryScheduler, type DeliveryScheduler } from "../delivery/delivery-scheduler.ts";
import { isDirectMessages, type SlackAddress } from "./address.ts";
import { createAppHome } from "./press/app-home.ts";
import type { Bolt } from "./transport/bolt.ts";
import { createCallIntake, createCommandCalls } from "./intake/commands.ts";
import { limitOfLane } from "./transport/limits.ts";
import { withoutLookupTime } from "./errors.ts";
import { createFiles } from "./intake/files.ts";
import { createIncoming } from "./intake/incoming.ts";
import { createReplacedMessages } from "./intake/message-changes.ts";
import type { TeamHandlers } from "./transport/listeners.ts";
import { createCallerNotices, createRefusalNotices, createWelcome } from "./press/notices.ts";
import { createOrigins, type OriginOptions, createPeople, languageOf } from "./people.ts";
import { escapeText } from "./reply/escape-markdown.ts";
import { toPlainSection } from "./reply/message-blocks.ts";
import { createReplies, type ReplyMemory } from "./reply/replies.ts";
import { createMessageReader } from "./intake/read-message.ts";
import { createRoomReader, toMessageLink } from "./intake/read-room.ts";
import { createCall, createSlackApi, type Identity, type TeamToken } from "./transport/web-api.ts";

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
  readonly clock: Clock;
  /** This must outlast the process. */
  readonly kept?: Parameters<typeof createWelcome>[0]["kept"];
}

/** This is the bot in one workspace: its identity, its token, its limits, and what it shows there. */
export interface Team extends ReturnType<typeof createReplies> {
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
  /** The address of a message in the channel or thread, unless the workspace's is not known. */
  linkTo(at: SlackAddress, key: string): string | undefined;
  /** Resolves to the name of a channel, and to `undefined` for direct messages. */
  channelName(channel: string): Promise<string | undefined>;
  /** The same as {@link Platform.tellAlone}. */
  tellAlone(address: SlackAddress, text: string): Promise<void>;
  /** Resolves to the name of a user. It never throws. */
  userName(user: string): Promise<string | undefined>;
  /** Removes no messages any more. */
  stop(): void;
  /** Aborts downloads. */
  close(): Promise<void>;
}

/** Slack waits three seconds for the acknowledgement of an invitation. */
const welcomeLookupMs = 2000;
/** Returns the bot in the workspace of `identity`. It makes no call. */
export function createTeam(identity: Identity, token: TeamToken, around: TeamSurroundings): Team {
  const { bolt, apiUrl, commands, commandPrefix, receiver, history, memory, clock, log, meter } = around;
  const { teamId } = identity;
  const delivery = createDeliveryScheduler({
    platform: "slack",
    limitOf: limitOfLane,
    suspensions: memory.suspensions,
    clock,
    ...(meter === undefined ? {} : { meter }),
  });
  const api = createSlackApi(createCall(bolt, token, log), delivery, clock);
  const replaced = createReplacedMessages(api, log, clock);
  const people = createPeople({ lookUp: (id) => api.userInfo(id), log, maxPeople: around.maxPeople, clock });
  const read = createMessageReader({ api, identity, names: people, log });
  const readRoom = createRoomReader({ api, identity, names: people, read, clock });
  const files = createFiles({ api, token: () => token.current(), apiUrl });

  const { replaceUrls, titles } = memory;
  const replies = createReplies({
    ...around,
    api,
    scheduler: delivery,
    replaced,
    identity,
  });
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
    replaceUrls,
  };
  return {
    id: teamId,
    botUserId: identity.userId,
    botId: identity.botId,
    handlers,
    delivery,
    download: (attachment, options) => files.download(attachment, options),
    linkTo: (at, key) => toMessageLink(identity, at, key),
    readRoom: (address, query) => withoutLookupTime(() => readRoom(address, query)),
    ...replies,
    async tellAlone({ channel, thread, user }, text) {
      const content = { text: escapeText(text), blocks: [toPlainSection(text)] };
      if (isDirectMessages(channel)) return void (await api.post(channel, thread, content));
      try {
        await api.postEphemeral(channel, thread, user, content);
      } catch (error) {
        // The bot is not in the channel where a command was used.
        log.debug({ err: error }, "told in direct messages");
        await api.post(user, undefined, content);
      }
    },
    channelName: (channel) => api.channelName(channel),
    userName: async (user) => (await withoutLookupTime(() => people.find(user)))?.name,
    stop: () => replaced.close(),
    close: () => files.close(),
  };
}
