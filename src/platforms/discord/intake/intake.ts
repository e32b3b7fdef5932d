import type { APIInteraction } from "discord.js";
import type { Clock } from "../../../core/clock.ts";
import type { Command } from "../../../core/command.ts";
import type { ConversationHistory, Receiver } from "../../../core/receiver.ts";
import type { Records } from "../../../core/storage.ts";
import type { Log } from "../../../core/telemetry.ts";
import { isDirectType, isThreadType, toChannelPlace, toEventKey, toGuildPlace } from "../address.ts";
import { createInteractionHandler } from "../press/interactions.ts";
import type { DiscordApi } from "../transport/api.ts";
import { createOwnGuilds, type Bot, type Directory } from "../transport/directory.ts";
import type { ConnectionEvents } from "../transport/gateway-events.ts";
import type { ShardPlan } from "../transport/shards.ts";
import { createLocales } from "./locales.ts";
import { createDeletionEvents, createEditEvents, createOrderedChanges } from "./message-changes.ts";
import { createHiddenContentHint, createMessageEvents } from "./message-events.ts";
import { createMessageIntake } from "./messages.ts";
import { createMissedMessages } from "./missed-messages.ts";
import { createMemberships, createOrigins } from "./origin.ts";
import { createReplyChains } from "./reply-chains.ts";

/** What people do on Discord, from the gateway's events to the receiver. */
interface Intake {
  readonly events: ConnectionEvents;
  /** Resolves when everything taken so far has reached the receiver. */
  idle(): Promise<void>;
}

/** Connects those who handle the events of a connection with each other. */
export function createIntake(options: {
  readonly api: DiscordApi;
  readonly commands: ReadonlyMap<string, Command>;
  readonly receiver: Receiver;
  readonly history: ConversationHistory;
  readonly records: Pick<Records, "get" | "set">;
  readonly bot: Bot;
  readonly directory: Directory;
  /** Returns the shards of this process. */
  readonly plan: () => ShardPlan | undefined;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Aborts when the platform stops. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}): Intake {
  const { api, commands, receiver, history, bot, directory } = options;
  const { now, signal, clock, log } = options;
  const locales = createLocales((guildId) => directory.guildLocale(guildId));
  const memberships = createMemberships(api, createOwnGuilds(api, directory, options.plan), clock);
  const origins = createOrigins({ api, directory, memberships, clock });
  const handling = new Set<Promise<void>>();

  function track(work: Promise<void>, interaction: APIInteraction): void {
    const tracked = work
      .catch((error: unknown) =>
        log.error({ interaction: interaction.id, err: error }, "interaction handling failed"),
      )
      .finally(() => handling.delete(tracked));
    handling.add(tracked);
  }

  const chains = createReplyChains({
    api,
    isKnown: async (id) => directory.isOpen(id) || (await history.knows(id)),
    acceptedIn: (questionId) => history.conversationOf(toEventKey(questionId)),
    botId: bot.id,
    log,
  });
  const messageEvents = createMessageEvents({
    receiver,
    history,
    channels: directory,
    origins,
    chains,
    hintOfHidden: createHiddenContentHint({ api, readsContents: bot.readsContents, log }),
    locales,
    botId: bot.id,
    now,
  });
  const messages = createMessageIntake({
    api,
    receiver,
    channels: directory,
    names: bot.names,
    events: messageEvents,
    languageOf: ({ author, guild_id: guildId }) => locales.languageOf(author.id, guildId),
    lookUpLater: ({ channel_id: channelId, id, guild_id: guildId }) =>
      missed.lookAgain(channelId, id, guildId),
    lookUpFirst: (channelId) => missed.searchFirst(channelId),
    signal,
    clock,
    log,
  });
  const missed = createMissedMessages({
    api,
    history,
    records: options.records,
    async holdsConversations(channelId) {
      const type = (await directory.channelIfReadable(channelId))?.type;
      return type !== undefined && !isThreadType(type) && !isDirectType(type);
    },
    isAnsweredWhole: async (channelId, guildId) => {
      const place = await receiver.placeSettings({
        ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
        channel: toChannelPlace(channelId),
      });
      return place.answerTo === "all" || place.answerTo === "named";
    },
    take: (message) => messages.take(message, { isMissed: true }),
    onEdited: (message) => edits.message(message),
    botId: bot.id,
    now,
    signal,
    clock,
    log,
  });
  const changes = createOrderedChanges({
    caughtUp: async (channelId) => {
      await missed.pending(channelId);
      await messages.caughtUp(channelId);
    },
    signal,
    clock,
    log,
  });
  const deletions = createDeletionEvents({ receiver, channels: directory, chains, changes });
  const edits = createEditEvents({
    api,
    receiver,
    chains,
    events: messageEvents,
    names: bot.names,
    changes,
    wasAside: (messageId) => messages.wasAside(messageId),
    takeNew: (message) => messages.take(message),
  });
  const handle = createInteractionHandler({
    api,
    receiver,
    commands,
    names: bot.names,
    origins,
    locales,
    notes: bot.notes,
    now,
    clock,
    log,
  });
  const events: Intake["events"] = {
    sessionStarted: (shard) => missed.start(shard),
    guildAvailable: (guildId, channelsOf) => missed.guildAvailable(guildId, channelsOf),
    message(message) {
      const pending = missed.pending(message.channel_id);
      if (pending === undefined) messages.take(message);
      else void pending.then(() => messages.take(message));
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
  };
  return {
    events,
    async idle() {
      await messages.idle();
      await Promise.all(handling);
    },
  };
}
