import { GatewayDispatchEvents } from "discord-api-types/v10";
import type {
  APIChannel,
  APIInteraction,
  GatewayDispatchPayload,
  GatewayMessageCreateDispatchData,
  GatewayMessageUpdateDispatchData,
} from "discord.js";
import type { GuildRecorder } from "./guild-directory.ts";
import { overwritesOf } from "./guild-directory.ts";
import type { IndexedChannel } from "./channel-index.ts";
import type { Shard } from "./shard-plan.ts";

/** A channel or active thread, and the id of its last message. */
export interface ChannelActivity {
  readonly id: string;
  readonly lastMessageId: string;
  /** A thread that the bot has opened: all of its messages are for the bot. Default false. */
  readonly isOwnThread?: boolean;
}

/** Handlers of the gateway's events. Contract: none of them throws. */
export interface ConnectionEvents {
  /** A shard has a new session: earlier events are not delivered. */
  sessionStarted(shard: Shard): void;
  /** After a session's start, once for each server: its channels and active threads, and the last message in each. */
  guildAvailable(guildId: string, channels: readonly ChannelActivity[]): void;
  message(message: GatewayMessageCreateDispatchData): void;
  /** A message changed: by an edit, or by what Discord adds. It may have a part of its fields only. */
  messageChanged(message: GatewayMessageUpdateDispatchData): void;
  interaction(interaction: APIInteraction): void;
  /** A thread was updated. */
  channelChanged(channelId: string): void;
  /** The bot may see other channels than before, or a thread only from now on. `channelId` undefined: any channel. */
  accessChanged(channelId?: string): void;
  messagesDeleted(channelId: string, messageIds: readonly string[]): void;
  /** A channel or thread was deleted. */
  channelDeleted(channelId: string): void;
  /** The bot is no longer in a server. */
  guildDeleted(guildId: string): void;
}

/** Passes an event on, and records what it says of servers, roles and channels. READY is not among them. */
export function dispatchEvent(
  payload: GatewayDispatchPayload,
  { events, guilds, botId }: { events: ConnectionEvents; guilds: GuildRecorder; botId: string },
): void {
  switch (payload.t) {
    case GatewayDispatchEvents.MessageCreate:
      return events.message(payload.d);
    case GatewayDispatchEvents.MessageUpdate:
      return events.messageChanged(payload.d);
    case GatewayDispatchEvents.InteractionCreate:
      return events.interaction(payload.d);
    case GatewayDispatchEvents.MessageDelete:
      return events.messagesDeleted(payload.d.channel_id, [payload.d.id]);
    case GatewayDispatchEvents.MessageDeleteBulk:
      return events.messagesDeleted(payload.d.channel_id, payload.d.ids);
    case GatewayDispatchEvents.ThreadUpdate:
      events.accessChanged(payload.d.id);
      return events.channelChanged(payload.d.id);
    case GatewayDispatchEvents.ThreadMemberUpdate:
    case GatewayDispatchEvents.ThreadMembersUpdate:
      return events.accessChanged(payload.d.id);
    case GatewayDispatchEvents.ThreadListSync:
    case GatewayDispatchEvents.GuildMemberUpdate:
      return events.accessChanged();
    case GatewayDispatchEvents.ThreadDelete:
      return events.channelDeleted(payload.d.id);
    case GatewayDispatchEvents.ChannelCreate:
    case GatewayDispatchEvents.ChannelUpdate:
      events.accessChanged();
      return recordChannel(guilds, payload.d);
    case GatewayDispatchEvents.ChannelDelete:
      if ("guild_id" in payload.d) guilds.removeChannel(payload.d.guild_id ?? "", payload.d.id);
      return events.channelDeleted(payload.d.id);
    case GatewayDispatchEvents.GuildCreate:
      events.accessChanged();
      // Also of a server in an outage, with nothing but its id.
      if (payload.d.unavailable === true) return;
      guilds.add(payload.d, botId);
      return events.guildAvailable(
        payload.d.id,
        toActivities([...payload.d.channels, ...payload.d.threads], botId),
      );
    case GatewayDispatchEvents.GuildUpdate:
      return guilds.update(payload.d, botId);
    case GatewayDispatchEvents.GuildDelete:
      events.accessChanged();
      // `unavailable`: an outage, not a deletion.
      if (payload.d.unavailable === true) return;
      guilds.remove(payload.d.id);
      return events.guildDeleted(payload.d.id);
    case GatewayDispatchEvents.GuildRoleCreate:
    case GatewayDispatchEvents.GuildRoleUpdate:
      events.accessChanged();
      return guilds.setRole(payload.d.guild_id, payload.d.role, botId);
    case GatewayDispatchEvents.GuildRoleDelete:
      events.accessChanged();
      return guilds.removeRole(payload.d.guild_id, payload.d.role_id);
    default:
      return undefined;
  }
}

function recordChannel(guilds: GuildRecorder, channel: APIChannel): void {
  if ("guild_id" in channel && channel.guild_id !== undefined)
    guilds.setChannel(channel.guild_id, toIndexed(channel), overwritesOf(channel));
}

function toIndexed({ id, type, name }: APIChannel): IndexedChannel {
  return { id, type, name: name ?? "" };
}

function toActivities(channels: readonly APIChannel[], botId: string): ChannelActivity[] {
  return channels.flatMap((channel) => {
    const last = "last_message_id" in channel ? channel.last_message_id : undefined;
    const isOwnThread = "owner_id" in channel && channel.owner_id === botId;
    return typeof last === "string" ? [{ id: channel.id, lastMessageId: last, isOwnThread }] : [];
  });
}
