import { LRUCache } from "lru-cache";
import type { ConnectionEvents } from "./gateway-events.ts";

/** The part of a message that is looked at. */
export interface HeardMessage {
  readonly id: string;
  readonly channel_id: string;
  readonly guild_id?: string;
  readonly author: { readonly id: string };
  readonly mentions: readonly { readonly id: string }[];
}

/**
 * What the gateway has delivered in channels where people mention the bot, so that a thread in which nobody else said
 * anything since the last mention need not be read again. Nothing is assumed of what may not have been delivered.
 */
export interface HeardMessages {
  /** Called for every message, in the order of delivery. */
  hear(message: HeardMessage): void;
  /**
   * Whether everything that others said between two messages was delivered, and there is nothing. Both are ids; both
   * messages must have been delivered themselves.
   */
  isQuietBetween(channelId: string, afterId: string, beforeId: string): boolean;
  /** What is said in a channel may be delivered no more, or was not. Default: in any. */
  forget(channelId?: string): void;
}

const maxChannels = 1000;
/** A channel in which more is said is read. */
const maxHeard = 20;
/** After a longer pause a channel is read: the bot may have been kept out of it meanwhile. */
const maxPauseMs = 10 * 60_000;

interface Heard {
  /** Ids since the first of them, without the bot's own messages. */
  readonly ids: string[];
  lastAt: number;
}

/** @see {@link HeardMessages} */
export function createHeardMessages(botId: () => string, now: () => number): HeardMessages {
  const channels = new LRUCache<string, Heard>({ max: maxChannels });

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
      // In the order of delivery: one that came late, with a lower id, is no reason to believe that there are no others.
      return from !== -1 && ids[from + 1] === beforeId;
    },
    forget(channelId) {
      if (channelId === undefined) channels.clear();
      else channels.delete(channelId);
    },
  };
}

/** Handlers of the gateway's events that hear every message first. A new session may have missed some. */
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
