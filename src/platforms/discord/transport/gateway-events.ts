import {
  GatewayDispatchEvents,
  type APIChannel,
  type APIInteraction,
  type GatewayDispatchPayload,
  type GatewayMessageCreateDispatchData,
  type GatewayMessageUpdateDispatchData,
} from "discord.js";
import type { Shard } from "./shards.ts";
import { createRecent } from "../../../support/recent.ts";

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
  /** The bot may see other channels than before, or a new thread. Without `channelId` it may be any. */
  accessChanged(channelId?: string): void;
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
      events.accessChanged(payload.d.id);
      return events.channelChanged(payload.d.id);
    case GatewayDispatchEvents.ThreadMemberUpdate:
    case GatewayDispatchEvents.ThreadMembersUpdate:
      return events.accessChanged(payload.d.id);
    case GatewayDispatchEvents.ThreadListSync:
    case GatewayDispatchEvents.GuildMemberUpdate:
    case GatewayDispatchEvents.ChannelCreate:
    case GatewayDispatchEvents.ChannelUpdate:
    case GatewayDispatchEvents.GuildRoleCreate:
    case GatewayDispatchEvents.GuildRoleUpdate:
    case GatewayDispatchEvents.GuildRoleDelete:
      return events.accessChanged();
    case GatewayDispatchEvents.ThreadDelete:
    case GatewayDispatchEvents.ChannelDelete:
      return events.channelDeleted(payload.d.id);
    case GatewayDispatchEvents.GuildCreate:
      events.accessChanged();
      // The event also comes for a server in an outage, with nothing but its id.
      if (payload.d.unavailable === true) return;
      return events.guildAvailable(
        payload.d.id,
        toActivities([...payload.d.channels, ...payload.d.threads], botId),
      );
    case GatewayDispatchEvents.GuildDelete:
      events.accessChanged();
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

/** The part of a message that is looked at. */
interface HeardMessage {
  readonly id: string;
  readonly channel_id: string;
  readonly guild_id?: string;
  readonly author: { readonly id: string };
  readonly mentions: readonly { readonly id: string }[];
}

/**
 * Remembers what the gateway has delivered in channels where people mention the bot. A thread in which nobody
 * else said anything since the last mention then need not be read again. Nothing is assumed about messages
 * that may not have been delivered.
 */
export interface HeardMessages {
  /** Called for every message, in the order of delivery. */
  hear(message: HeardMessage): void;
  /**
   * Whether everything that others said between two messages was delivered, and there is nothing. Both
   * arguments are ids, and both messages must have been delivered themselves.
   */
  isQuietBetween(channelId: string, afterId: string, beforeId: string): boolean;
  /** Forgets a channel whose messages may not all be delivered. Without an id it forgets all channels. */
  forget(channelId?: string): void;
}

const maxChannels = 1000;
/** A channel in which more is said is read. */
const maxHeard = 20;
/** After a longer pause a channel is read, since the bot may have been kept out of it meanwhile. */
const maxPauseMs = 10 * 60_000;

interface Heard {
  /** The ids since the first of them, without the bot's own messages. */
  readonly ids: string[];
  lastAt: number;
}

export function createHeardMessages(botId: () => string, now: () => number): HeardMessages {
  const channels = createRecent<Heard>(maxChannels);

  return {
    hear({ id, channel_id: channelId, guild_id: guildId, author, mentions }) {
      if (guildId === undefined || author.id === botId()) return;
      const at = now();
      const heard = channels.get(channelId);
      if (heard !== undefined && at - heard.lastAt <= maxPauseMs) {
        heard.ids.push(id);
        heard.lastAt = at;
        if (heard.ids.length > maxHeard) heard.ids.shift();
      } else if (mentions.some((mentioned) => mentioned.id === botId())) {
        channels.set(channelId, { ids: [id], lastAt: at });
      } else if (heard !== undefined) channels.delete(channelId);
    },
    isQuietBetween(channelId, afterId, beforeId) {
      const ids = channels.get(channelId)?.ids ?? [];
      const from = ids.indexOf(afterId);
      // Ids are compared in order of delivery: a late one with a lower id does not rule out others.
      return from !== -1 && ids[from + 1] === beforeId;
    },
    forget(channelId) {
      if (channelId === undefined) channels.clear();
      else channels.delete(channelId);
    },
  };
}

/** Makes the handlers remember every message first. A new session starts afresh, since it may lack some. */
export function withHearing(
  events: Omit<ConnectionEvents, "accessChanged">,
  heard: Pick<HeardMessages, "hear" | "forget">,
): ConnectionEvents {
  return {
    ...events,
    sessionStarted(shard) {
      heard.forget();
      events.sessionStarted(shard);
    },
    message(message) {
      heard.hear(message);
      events.message(message);
    },
    accessChanged: (channelId) => heard.forget(channelId),
  };
}
