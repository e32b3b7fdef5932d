import { ChannelType, type APIInteraction } from "discord.js";
import type { Command } from "../../core/command.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Log, Meter } from "../../core/telemetry.ts";
import type { ConversationHistory, Platform, PlatformHealth, Receiver } from "../../core/platform.ts";
import { createEditingReply } from "../delivery/editing-reply.ts";
import { createAcknowledgements, withAcknowledgements } from "./acknowledgements.ts";
import { fromReplyAddress, toChannelPlace, toGuildPlace, toReplyAddress } from "./address.ts";
import { createDiscordApi, publicApiUrl } from "./api.ts";
import { registerCommands } from "./commands.ts";
import { connect, type Connection } from "./connection.ts";
import { createAttachmentDownload } from "./download.ts";
import { createDiscordClock } from "./discord-clock.ts";
import { createFreshTokens } from "./fresh-tokens.ts";
import { createHttpAgent } from "./http-agent.ts";
import type { Names } from "./incoming.ts";
import { createInteractionHandler } from "./interactions.ts";
import { createMessageIntake, type MessageIntake } from "./messages.ts";
import { createMemberships } from "./memberships.ts";
import { createMissedMessages } from "./missed-messages.ts";
import { createChannelCache } from "./channel-cache.ts";
import { createDeletionEvents } from "./deletion-events.ts";
import { createDiscordScheduler, createLimitReader, withDelivery } from "./delivery.ts";
import { toRefKey } from "./message-ref.ts";
import { createOwnPosts } from "./own-posts.ts";
import { createDiscordTarget } from "./reply.ts";
import { snowflakeAt } from "./snowflake.ts";
import { createGuildFacts, createOrigins } from "./origin.ts";
import { createModalTargetCache } from "./modal-target-cache.ts";
import { createReplyChains } from "./reply-chains.ts";
import { createThreads } from "./threads.ts";

/** Options of {@link createDiscordPlatform}. */
export interface DiscordOptions {
  readonly token: string;
  /** Default `https://discord.com/api`. Its host is also trusted for attachments. */
  readonly apiUrl?: string;
  readonly commands: ReadonlyMap<string, Command>;
  readonly log: Log;
  readonly meter?: Pick<Meter, "delivery" | "platformLimited">;
  /** Unix milliseconds. Default: Discord's time. */
  readonly now?: () => number;
}

/** Discord as a {@link Platform}. @see docs/discord.md */
export function createDiscordPlatform(options: DiscordOptions): Platform {
  const { commands, log } = options;
  const apiUrl = (options.apiUrl ?? publicApiUrl).replace(/\/+$/, "");
  const clock = createDiscordClock();
  const now = options.now ?? (() => clock.now());
  const onResponse = clock.observe;
  const agent = createHttpAgent();
  const scheduler = createDiscordScheduler(options.meter);
  const onLimits = createLimitReader(scheduler, apiUrl === publicApiUrl ? 50 : 0);
  const plainApi = createDiscordApi({ token: options.token, apiUrl, agent, onResponse, onLimits });
  const acknowledgements = createAcknowledgements(plainApi, log);
  const api = withDelivery(withAcknowledgements(plainApi, acknowledgements), scheduler);
  const ownPosts = createOwnPosts();
  const threads = createThreads(api, log);
  const freshTokens = createFreshTokens(now);
  const modalTargets = createModalTargetCache(api);
  const downloads = createAttachmentDownload(api, apiUrl);
  let connection: Connection | undefined;
  let messages: MessageIntake | undefined;
  let state: PlatformHealth = { state: "connecting" };
  const stopping = new AbortController();
  let registration: Promise<void> = Promise.resolve();
  const handling = new Set<Promise<void>>();

  const channels = createChannelCache(api, (id) => connection?.client.channels.cache.get(id)?.type);

  const memberships = createMemberships(api, () => [...(connection?.client.guilds.cache.keys() ?? [])]);
  const origins = createOrigins({
    api,
    channels,
    memberships,
    guilds: createGuildFacts(() => connection?.client),
  });

  function names(guildId: string | undefined): Names {
    const client = connection?.client;
    const guild = guildId === undefined ? undefined : client?.guilds.cache.get(guildId);
    const botId = connection?.identity.botId ?? "";
    return {
      botId,
      botName: connection?.identity.botName ?? "bot",
      botRoleId: guild?.roles.cache.find((role) => role.tags?.botId === botId)?.id,
      roleName: (id) => guild?.roles.cache.get(id)?.name,
      channelName(id) {
        const channel = client?.channels.cache.get(id);
        return channel !== undefined && "name" in channel ? (channel.name ?? undefined) : undefined;
      },
    };
  }

  /** Of people, roles and servers the names that the client knows without a request. */
  async function nameOf(id: string): Promise<string | undefined> {
    const client = connection?.client;
    const channelId = /^discord:channel:(\d+)$/.exec(id)?.[1];
    if (channelId !== undefined) {
      const name = names(undefined).channelName(channelId) ?? (await channels.nameOf(channelId));
      return name === undefined ? undefined : `#${name}`;
    }
    const roleId = /^discord:role:(\d+)$/.exec(id)?.[1];
    if (roleId !== undefined)
      return client?.guilds.cache.map((guild) => guild.roles.cache.get(roleId)?.name).find(Boolean);
    const guildId = /^discord:guild:(\d+)$/.exec(id)?.[1];
    if (guildId !== undefined) return client?.guilds.cache.get(guildId)?.name;
    const user = client?.users.cache.get(/^discord:(?:user:)?(\d+)$/.exec(id)?.[1] ?? "");
    return user?.globalName ?? user?.username;
  }

  /** Without the Message Content Intent, messages that do not mention the bot arrive empty. */
  function notes(): Readonly<Record<string, string>> {
    const { state: current, detail } = connection?.health() ?? { state: "connecting" };
    return current === "ready" && detail !== undefined
      ? { "answer-to": "Without the Message Content Intent only messages that mention it can be read" }
      : {};
  }

  /** An id after those of the bot's messages in a channel so far. Discord's clock is known to a second. */
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

  async function start(receiver: Receiver, history: ConversationHistory): Promise<void> {
    const chains = createReplyChains({
      api,
      isKnown: async (id) => channels.isOpen(id) || (await receiver.knows(id)),
      botId: () => connection?.identity.botId ?? "",
      log,
    });
    messages = createMessageIntake({
      api,
      receiver,
      channels,
      names,
      origins,
      chains,
      lookUpLater: () => missed.startUnlessSearching(),
      lookUpFirst: (channelId) => missed.searchFirst(channelId),
      signal: stopping.signal,
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
        return place.answerTo === "every-message";
      },
      take: (message) => messages?.take(message, { isMissed: true }),
      onOwnMessage: (message) => messages?.settleNotice(message),
      botId: () => connection?.identity.botId ?? "",
      now,
      signal: stopping.signal,
      log,
    });
    const intake = messages;
    const deletions = createDeletionEvents({
      receiver,
      channels,
      chains,
      caughtUp: async (channelId) => {
        await missed.pending(channelId);
        await intake.caughtUp(channelId);
      },
      signal: stopping.signal,
      log,
    });
    const handle = createInteractionHandler({
      api,
      acknowledgements,
      receiver,
      commands,
      names,
      origins,
      modalTargets,
      notes,
      freshTokens,
      now,
      log,
    });
    // Events that arrive before `connect` has resolved wait for the identity of the bot.
    const early: (() => void)[] = [];
    const whenConnected = (handleEvent: () => void): void => {
      if (stopping.signal.aborted) return;
      if (connection === undefined) early.push(handleEvent);
      else handleEvent();
    };
    try {
      connection = await connect({
        token: options.token,
        apiUrl,
        agent,
        onResponse,
        log,
        signal: stopping.signal,
        events: {
          sessionStarted: () => whenConnected(() => missed.start()),
          guildAvailable: (guildId, channelsOf) =>
            whenConnected(() => missed.guildAvailable(guildId, channelsOf)),
          message: (message) =>
            whenConnected(() => {
              const pending = missed.pending(message.channel_id);
              if (pending === undefined) messages?.take(message);
              else void pending.then(() => messages?.take(message));
            }),
          interaction: (interaction) => whenConnected(() => track(handle(interaction), interaction)),
          channelChanged: (channelId) => channels.forget(channelId),
          messagesDeleted: (channelId, ids) => whenConnected(() => deletions.messages(channelId, ids)),
          channelDeleted: (channelId) => whenConnected(() => deletions.channel(channelId)),
          guildDeleted: (guildId) =>
            whenConnected(() => {
              memberships.clear();
              deletions.guild(guildId);
            }),
        },
      });
    } catch (error) {
      state = { state: "failed", detail: error instanceof Error ? error.message : "could not connect" };
      throw error;
    }
    for (const handleEvent of early) handleEvent();
    registration = registerCommands(api, connection.identity.applicationId, commands.values(), log).catch(
      (error: unknown) => log.error({ err: error }, "command registration failed"),
    );
  }

  return {
    id: "discord",
    deliversInOrder: true,
    start,
    openReply(given, hooks) {
      const address = fromReplyAddress(given);
      const botId = (): string => connection?.identity.botId ?? "";
      const postedAfter = address.postedAfter ?? lastIdOf(address.channelId);
      return createEditingReply({
        target: createDiscordTarget({
          api,
          address,
          threads,
          scheduler,
          freshTokens,
          ownPosts,
          botId,
          log,
          now,
        }),
        savedRefs: address.messages ?? [],
        saveRefs: (refs) => hooks.saveAddress(toReplyAddress({ ...address, postedAfter, messages: refs })),
        log,
        isCalm: hooks.isCalm === true,
        placeholder: "Thinking…",
        // Discord shows "thinking…" for a deferred command until the first edit.
        firstMessageIsShown: address.interaction !== undefined && (address.messages ?? []).length === 0,
      });
    },
    shownMessageKeys: (address) => fromReplyAddress(address).messages?.map((ref) => toRefKey(ref)) ?? [],
    // A direct message is private already; elsewhere only interactions have private answers.
    toPrivateAddress: (address) =>
      (fromReplyAddress(address).channelType as ChannelType) === ChannelType.DM ? address : undefined,
    openThread: (address, { title }) => threads.open(fromReplyAddress(address), title),
    download: (attachment, limits) => downloads.download(attachment, limits),
    nameOf,
    guide: {
      commandPrefix: "",
      hasMessageMenus: true,
      speaking: [
        "In a direct message, every message is answered.",
        "In a channel, mention me: the answer opens a thread.",
        "In a thread that I opened, every message is answered. In other threads, mention me or reply to me.",
        "Pictures, voice notes and text files can be attached to any message.",
      ],
    },
    delivery: scheduler,
    health: () => connection?.health() ?? state,
    // Discord delivers to every instance, and nothing twice: messages are kept from now on, commands refused.
    pause: () => Promise.resolve(),
    async stop() {
      stopping.abort(new ParleyError("stopping", "the Discord platform is stopping"));
      await messages?.idle();
      await Promise.all(handling);
      await registration;
      await downloads.close();
      await connection?.close();
      await agent.close();
    },
  };
}
