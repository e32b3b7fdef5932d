import {
  GatewayDispatchEvents,
  type APIChannel,
  type APIInteraction,
  type GatewayDispatchPayload,
  type GatewayMessageCreateDispatchData,
  type GatewayMessageUpdateDispatchData,
} from "discord.js";
import type { Shard } from "./shards.ts";

/** A channel or active thread, and the id of its last message. */
export interface ChannelActivity {
  readonly id: string;
  readonly lastMessageId: string;
  /** Whether it is a thread that the bot has opened, in which all messages are for the bot. Default false. */
  readonly isOwnThread?: boolean;
}

/** Handles the gateway's events. Contract: none of the handlers throws. */
export interface ConnectionEvents {
  /** A shard has a new session, so earlier events are not delivered. */
  sessionStarted(shard: Shard): void;
  /** Comes once for each server after a session's start, with its channels and active threads. */
  guildAvailable(guildId: string, channels: readonly ChannelActivity[]): void;
  message(message: GatewayMessageCreateDispatchData): void;
  /** A message changed, by an edit or by what Discord adds. It may have only a part of its fields. */
  messageChanged(message: GatewayMessageUpdateDispatchData): void;
  interaction(interaction: APIInteraction): void;
  /** A thread was updated. */
  channelChanged(channelId: string): void;
  messagesDeleted(channelId: string, messageIds: readonly string[]): void;
  /** A channel or thread was deleted. */
  channelDeleted(channelId: string): void;
  /** The bot was removed from a server. */
  guildDeleted(guildId: string): void;
}

/** Passes an event on. READY is handled elsewhere. */
export function dispatchEvent(
  payload: GatewayDispatchPayload,
  events: ConnectionEvents,
  botId: string,
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
      return events.channelChanged(payload.d.id);
    case GatewayDispatchEvents.ThreadDelete:
    case GatewayDispatchEvents.ChannelDelete:
      return events.channelDeleted(payload.d.id);
    case GatewayDispatchEvents.GuildCreate:
      // The event also comes for a server in an outage, with nothing but its id.
      if (payload.d.unavailable === true) return;
      return events.guildAvailable(
        payload.d.id,
        toActivities([...payload.d.channels, ...payload.d.threads], botId),
      );
    case GatewayDispatchEvents.GuildDelete:
      // `unavailable` marks an outage, not a deletion.
      if (payload.d.unavailable === true) return;
      return events.guildDeleted(payload.d.id);
    default:
      return undefined;
  }
}

function toActivities(channels: readonly APIChannel[], botId: string): ChannelActivity[] {
  return channels.flatMap((channel) => {
    const last = "last_message_id" in channel ? channel.last_message_id : undefined;
    const isOwnThread = "owner_id" in channel && channel.owner_id === botId;
    return typeof last === "string" ? [{ id: channel.id, lastMessageId: last, isOwnThread }] : [];
  });
}
