import { intents, type Gateway } from "./gateway.ts";
import { renderChannel } from "./render.ts";
import {
  channelTypes,
  findMessage,
  isThread,
  type SimChannel,
  type SimMessage,
  type World,
} from "./world.ts";

const messageIntentOf = (channel: SimChannel): number =>
  channel.type === channelTypes.dm ? intents.directMessages : intents.guildMessages;

const guildOf = (channel: SimChannel) => (channel.guildId === undefined ? {} : { guild_id: channel.guildId });

/** Deletes a message and dispatches its id. Ephemeral messages cause no event. */
export function removeMessage(world: World, gateway: Gateway, message: SimMessage): void {
  message.isDeleted = true;
  const channel = world.channels.get(message.channelId);
  if (channel === undefined || message.ephemeralTo !== undefined) return;
  gateway.dispatch(
    "MESSAGE_DELETE",
    { id: message.id, channel_id: channel.id, ...guildOf(channel) },
    messageIntentOf(channel),
  );
}

/** Deletes messages as a moderator does. Several in a server's channel are one bulk event, of at most 100. */
export function purge(world: World, gateway: Gateway, channel: SimChannel, ids: readonly string[]): void {
  const messages = ids.map((id) => findMessage(world, channel.id, id));
  if (messages.includes(undefined)) throw new Error("no such message");
  const [first] = messages;
  if (messages.length === 1 && first !== undefined) return removeMessage(world, gateway, first);
  if (channel.guildId === undefined || messages.length > 100) throw new Error("not in bulk");
  for (const message of messages) if (message !== undefined) message.isDeleted = true;
  gateway.dispatch(
    "MESSAGE_DELETE_BULK",
    { ids, channel_id: channel.id, ...guildOf(channel) },
    messageIntentOf(channel),
  );
}

/** Deletes a channel or thread. THREAD_DELETE has four fields. A channel's threads cause no events. */
export function removeChannel(world: World, gateway: Gateway, channel: SimChannel): void {
  const rendered = renderChannel(world, channel);
  world.channels.delete(channel.id);
  if (isThread(channel)) {
    const { id, guildId, parentId, type } = channel;
    gateway.dispatch("THREAD_DELETE", { id, guild_id: guildId, parent_id: parentId, type }, intents.guilds);
    return;
  }
  for (const thread of world.channels.values()) {
    if (thread.parentId === channel.id) world.channels.delete(thread.id);
  }
  gateway.dispatch("CHANNEL_DELETE", rendered, intents.guilds);
}

/** Dispatches GUILD_DELETE. `unavailable` is present, and true, only in an outage. */
export function removeGuild(
  world: World,
  gateway: Gateway,
  { isOutage = false }: { readonly isOutage?: boolean } = {},
): void {
  if (!isOutage) {
    world.guild.hasBot = false;
    for (const channel of world.channels.values())
      if (channel.guildId === world.guild.id) world.channels.delete(channel.id);
  }
  gateway.dispatch(
    "GUILD_DELETE",
    { id: world.guild.id, ...(isOutage ? { unavailable: true } : {}) },
    intents.guilds,
  );
}
