import { ChannelType, type APIInteraction } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { ConversationHistory, Platform, Receiver } from "../../core/platform.ts";
import type { Claims, Records } from "../../core/storage.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import { systemClock } from "../../support/clock.ts";
import { translate } from "../../words/translate.ts";
import { createSuspensionWatch } from "../delivery/delivery-scheduler.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import { parseShownFiles } from "../delivery/message-plan.ts";
import { createAcknowledgements, withAcknowledgements, createFreshTokens } from "./press/acknowledgements.ts";
import {
  fromReplyAddress,
  toChannelPlace,
  toEventKey,
  toGuildPlace,
  toReplyAddress,
  toRefKey,
  snowflakeAt,
} from "./address.ts";
import { type DiscordApi, createDiscordApi, publicApiUrl } from "./transport/api.ts";
import { createModalTargetCache } from "./press/call-intake.ts";
import { registerCommands } from "./press/commands.ts";
import { createConnection, type Connection } from "./transport/connection.ts";
import { createDiscordScheduler, createLimitReader, withDelivery } from "./transport/delivery.ts";
import { createOwnPosts } from "./reply/destination.ts";
import { createDirectory, createOwnGuilds } from "./transport/directory.ts";
import { discordCode, errorCodes } from "./errors.ts";
import { createAttachmentDownload } from "./intake/files.ts";
import { type ConnectionEvents, createHeardMessages, withHearing } from "./transport/gateway-events.ts";
import type { Names } from "./intake/incoming.ts";
import { createInteractionHandler } from "./press/interactions.ts";
import { createLocales } from "./intake/locales.ts";
import { createDiscordClock, createInvalidRequestGuard } from "./transport/make-request.ts";
import { createDeletionEvents, createEditEvents, createOrderedChanges } from "./intake/message-changes.ts";
import {
  createHiddenContentNotices,
  createMessageEvents,
  createReplyChains,
} from "./intake/message-events.ts";
import { createMessageIntake, type MessageIntake } from "./intake/messages.ts";
import { createMissedMessages } from "./intake/missed-messages.ts";
import { createMemberships, createOrigins } from "./intake/origin.ts";
import { createRoomReader } from "./intake/read-room.ts";
import { createDiscordTarget } from "./reply/reply.ts";
import { automaticShards, isOwnGuild, type ShardSettings } from "./transport/shards.ts";
import { createThreads } from "./reply/threads.ts";
import { createRecent } from "../../support/recent.ts";

/** The options of {@link createDiscordPlatform}. */
interface DiscordOptions {
  readonly token: string;
  /** Its host is also trusted for attachments. Default `https://discord.com/api`. */
  readonly apiUrl?: string;
  /** What Discord allows this process, over all routes. Default 50. */
  readonly requestsPerSecond?: number;
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  readonly meter?: Pick<Meter, "delivery" | "platformLimited">;
  /** The default is as many as Discord recommends, all in this process. */
  readonly shards?: ShardSettings;
  /** By default, this process has no others beside it. */
  readonly claims?: Claims;
  /** Stores what outlives the process. By default nothing does. */
  readonly records?: Pick<Records, "get" | "set">;
  /** Unix milliseconds. The default is Discord's time. */
  readonly now?: () => number;
  /** The default is the time of this process. */
  readonly clock?: Clock | undefined;
}

const ownClaims: Claims = { isShared: false, claim: () => Promise.resolve(true) };

const noRecords = { get: () => Promise.resolve(undefined), set: () => Promise.resolve() };

/** Creates Discord as a {@link Platform}. @see docs/discord.md */
export function createDiscordPlatform(options: DiscordOptions): Platform {
  const { commands, log, clock = systemClock } = options;
  const apiUrl = (options.apiUrl ?? publicApiUrl).replace(/(?<!\/)\/+$/, "");
  const discordClock = createDiscordClock(clock);
  const now = options.now ?? (() => discordClock.now());
  const onResponse = discordClock.observe;
  const suspensions = createSuspensionWatch(clock);
  const scheduler = createDiscordScheduler({
    meter: options.meter,
    requestsPerSecond: options.requestsPerSecond,
    suspensions,
    clock,
  });
  const onLimits = createLimitReader(scheduler, apiUrl === publicApiUrl ? 50 : 0);
  const guard = createInvalidRequestGuard({ log, clock });
  const plainApi = createDiscordApi({ ...options, apiUrl, onResponse, onLimits, guard });
  const acknowledgements = createAcknowledgements(plainApi, log, clock);
  const api = withPlainReplies(
    withDelivery(withAcknowledgements(plainApi, acknowledgements), scheduler, now, clock),
    log,
  );
  const ownPosts = createOwnPosts();
  const freshTokens = createFreshTokens(now);
  const locales = createLocales({
    guildLocale: (guildId) => directory.guildLocale(guildId),
    records: options.records ?? noRecords,
    log,
    now,
  });
  const modalTargets = createModalTargetCache(api);
  const downloads = createAttachmentDownload(api, apiUrl);
  let connection: Connection | undefined;
  let messages: MessageIntake | undefined;
  const stopping = new AbortController();
  let registration: Promise<void> = Promise.resolve();
  const handling = new Set<Promise<void>>();

  const directory = createDirectory(api, () => connection?.client(), clock);
  const threads = createThreads(api, directory, log, clock);

  const ownGuilds = createOwnGuilds(api, directory, () => connection?.plan(), clock);
  const memberships = createMemberships(api, ownGuilds, clock);
  const origins = createOrigins({ api, directory, memberships, clock });

  const botId = (): string => connection?.identity()?.botId ?? "";
  const heard = createHeardMessages(botId, () => clock.monotonic());

  function names(guildId: string | undefined): Names {
    return {
      botId: botId(),
      botName: connection?.identity()?.botName ?? "bot",
      botRoleId: guildId === undefined ? undefined : directory.botRoleId(guildId),
      roleName: (id) => directory.roleName(id),
      channelName: (id) => directory.channelName(id),
    };
  }

  /** Returns the name of a person, role, server or channel, as far as the gateway has named it. */
  async function nameOf(id: string): Promise<string | undefined> {
    const channelId = /^discord:channel:(\d+)$/.exec(id)?.[1];
    if (channelId !== undefined) {
      const name = await directory.nameOf(channelId);
      return name === undefined ? undefined : `#${name}`;
    }
    const roleId = /^discord:role:(\d+)$/.exec(id)?.[1];
    if (roleId !== undefined) return directory.roleName(roleId);
    const guildId = /^discord:guild:(\d+)$/.exec(id)?.[1];
    if (guildId !== undefined) return directory.guildName(guildId);
    const userId = /^discord:(?:user:)?(\d+)$/.exec(id)?.[1];
    return userId === botId() ? connection?.identity()?.botName : undefined;
  }

  /** Without the Message Content Intent, messages that do not mention the bot arrive empty. */
  function readsContents(): boolean {
    const { state: current, detail } = connection?.health() ?? { state: "connecting" };
    return current !== "ready" || detail === undefined;
  }

  function notes(): Readonly<Record<string, string>> {
    return !readsContents() ? { "answer-to": translate("discord.mentions-only") } : {};
  }

  /** Returns an id after those of the bot's messages in a channel. Discord's clock is known to a second. */
  function lastIdOf(channelId: string): string {
    const last = BigInt(ownPosts.lastIn(channelId) ?? 0);
    const current = snowflakeAt(now());
    return (last > current ? last : current).toString();
  }

  function track(work: Promise<void>, interaction: APIInteraction): void {
    const tracked = work
      .catch((error: unknown) =>
        log.error({ interaction: interaction.id, err: error }, "interaction handling failed"),
      )
      .finally(() => handling.delete(tracked));
    handling.add(tracked);
  }

  /** Creates what the platform works with from its start on. */
  function prepare(receiver: Receiver, history: ConversationHistory): Connection {
    const chains = createReplyChains({
      api,
      isKnown: async (id) => directory.isOpen(id) || (await receiver.knows(id)),
      acceptedIn: (questionId) => receiver.conversationOf(toEventKey(questionId)),
      botId,
      log,
    });
    const hiddenContent = createHiddenContentNotices({ api, readsContents, botId, log });
    const messageEvents = createMessageEvents({
      receiver,
      channels: directory,
      origins,
      chains,
      hiddenContent,
      locales,
      botId,
    });
    messages = createMessageIntake({
      api,
      receiver,
      channels: directory,
      names,
      events: messageEvents,
      languageOf: ({ author, guild_id: guildId }) => locales.languageOf(author.id, guildId),
      lookUpLater: () => missed.startUnlessSearching(),
      lookUpFirst: (channelId) => missed.searchFirst(channelId),
      signal: stopping.signal,
      clock,
      log,
    });
    const missed = createMissedMessages({
      api,
      history,
      isAnsweredWhole: async (channelId, guildId) => {
        const place = await receiver.placeSettings({
          ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
          channel: toChannelPlace(channelId),
        });
        return place.answerTo !== "mentions";
      },
      take: (message) => messages?.take(message, { isMissed: true }),
      onEdited: (message) => edits.message(message),
      botId,
      now,
      signal: stopping.signal,
      clock,
      log,
    });
    const intake = messages;
    const changes = createOrderedChanges({
      caughtUp: async (channelId) => {
        await missed.pending(channelId);
        await intake.caughtUp(channelId);
      },
      signal: stopping.signal,
      clock,
      log,
    });
    const deletions = createDeletionEvents({ receiver, channels: directory, chains, changes });
    const edits = createEditEvents({
      api,
      receiver,
      chains,
      events: messageEvents,
      names,
      changes,
      takeNew: (message) => intake.take(message),
    });
    const handle = createInteractionHandler({
      api,
      acknowledgements,
      receiver,
      commands,
      names,
      origins,
      modalTargets,
      locales,
      notes,
      freshTokens,
      now,
      clock,
      log,
    });
    const events = {
      sessionStarted: (shard) => missed.start(shard),
      guildAvailable: (guildId, channelsOf) => missed.guildAvailable(guildId, channelsOf),
      message(message) {
        const pending = missed.pending(message.channel_id);
        if (pending === undefined) messages?.take(message);
        else void pending.then(() => messages?.take(message));
      },
      messageChanged: (message) => edits.message(message),
      interaction: (interaction) => track(handle(interaction), interaction),
      channelChanged: (channelId) => directory.forget(channelId),
      messagesDeleted: (channelId, ids) => deletions.messages(channelId, ids),
      channelDeleted: (channelId) => deletions.channel(channelId),
      guildDeleted(guildId) {
        memberships.clear();
        deletions.guild(guildId);
      },
    } satisfies Omit<ConnectionEvents, "accessChanged">;
    return createConnection({
      token: options.token,
      apiUrl,
      shards: options.shards ?? automaticShards,
      claims: options.claims ?? ownClaims,
      onResponse,
      guard,
      onIdentified({ applicationId }, plan) {
        // All processes register once, since the commands belong to the application.
        if (isOwnGuild(undefined, plan)) register(applicationId);
      },
      events: withHearing(events, heard),
      log,
      signal: stopping.signal,
      clock,
    });
  }

  function register(applicationId: string): void {
    registration = registerCommands(api, applicationId, commands.values(), log).catch((error: unknown) =>
      log.error({ err: error }, "command registration failed"),
    );
  }

  const readRoom = createRoomReader({
    api,
    async names(channelId) {
      const [place] = await Promise.allSettled([directory.placeOf(channelId)]);
      return names(place.status === "fulfilled" ? place.value.guildId : undefined);
    },
    readsContents,
    heard,
  });

  return {
    id: "discord",
    deliversInOrder: true,
    async start(receiver, history) {
      connection ??= prepare(receiver, history);
      await connection.open();
    },
    openReply(given, hooks) {
      const address = fromReplyAddress(given);
      const postedAfter = address.postedAfter ?? lastIdOf(address.channelId);
      let shown = address.messages?.length ?? 0;
      let posts = address.posts ?? shown;
      return createEditingReply({
        target: createDiscordTarget({
          api,
          address,
          isResumed: hooks.isResumed === true,
          threads,
          parentOf: (threadId) => directory.parentOf(threadId),
          scheduler,
          freshTokens,
          ownPosts,
          async shownByOthers(ids) {
            const taken = (await hooks.otherTurnsShow?.(ids.map((id) => toEventKey(id)))) ?? [];
            return ids.filter((id) => taken.includes(toEventKey(id)));
          },
          botId,
          log,
          now,
          clock,
        }),
        savedRefs: address.messages ?? [],
        savedFiles: parseShownFiles(address.files),
        saveRefs(refs, files) {
          posts += Math.max(0, refs.length - shown);
          shown = refs.length;
          const counted = posts === shown ? {} : { posts };
          const shownFiles = files === undefined ? {} : { files: { ...files } };
          return hooks.saveAddress(
            toReplyAddress({ ...address, postedAfter, messages: refs, ...counted, ...shownFiles }),
          );
        },
        log,
        clock,
        suspensions,
        isCalm: hooks.isCalm === true,
        isEndOnly: hooks.isEndOnly === true,
        stop: hooks.stop,
        placeholder: translate("delivery.status", { status: translate("delivery.thinking") }),
        // Discord shows "thinking…" for a deferred command until the first edit.
        firstMessageIsShown: address.interaction !== undefined && (address.messages ?? []).length === 0,
      });
    },
    shownMessageKeys(given) {
      const { messages = [], files } = fromReplyAddress(given);
      return [...messages, ...(parseShownFiles(files)?.refs ?? [])].map((ref) => toRefKey(ref));
    },
    // A direct message is private already. Elsewhere only interactions have private answers.
    toPrivateAddress: (address) =>
      (fromReplyAddress(address).channelType as ChannelType) === ChannelType.DM ? address : undefined,
    openThread: (address, { title }) => threads.open(fromReplyAddress(address), title),
    download: (attachment, limits) => downloads.download(attachment, limits),
    readRoom,
    nameOf,
    guide: {
      commandPrefix: "",
      hasMessageMenus: true,
      exportsAs: "files",
      hasLocalNames: true,
      get speaking() {
        return (["direct", "channel", "thread", "files"] as const).map((part) =>
          translate(`discord.guide.${part}`),
        );
      },
    },
    delivery: scheduler,
    health: () => connection?.health() ?? { state: "connecting" },
    // Discord delivers everything once to each instance. Messages are kept from now on, and commands refused.
    pause: () => Promise.resolve(),
    async stop() {
      stopping.abort(new ParleyError("stopping", "the Discord platform is stopping"));
      await messages?.idle();
      await Promise.all(handling);
      await registration;
      await downloads.close();
      suspensions.stop();
      await connection?.close();
    },
  };
}

/** How many channels have their missing permission logged once. */
const maxLogged = 1000;

/**
 * Posts replies as ordinary messages where Discord refuses them, because a reply needs the permission Read
 * Message History. That is logged once for each channel.
 */
function withPlainReplies(api: DiscordApi, log: Log): DiscordApi {
  const logged = createRecent(maxLogged);
  return {
    ...api,
    async createMessage(channelId, body, options) {
      try {
        return await api.createMessage(channelId, body, options);
      } catch (error) {
        if (discordCode(error) !== errorCodes.noHistoryToReply || body.message_reference === undefined)
          throw error;
        if (!logged.has(channelId))
          log.warn(
            { channel: channelId, permission: "Read Message History" },
            "permission missing: answers here are not shown as replies, so that nobody can go on by replying",
          );
        logged.set(channelId, true);
        return await api.createMessage(channelId, { ...body, message_reference: undefined }, options);
      }
    },
  };
}
