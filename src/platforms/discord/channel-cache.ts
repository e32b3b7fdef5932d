import type { APIChannel } from "discord.js";
import { conversationIdOf } from "./address.ts";
import type { DiscordApi } from "./api.ts";

const mostRemembered = 1000;

/** What is known about channels that the client does not keep. */
export interface Places {
  /** Discord's channel type of where a message stands. */
  typeOf(message: { readonly channel_id: string; readonly channel_type?: number }): Promise<number>;
  /** Who opened a thread. */
  ownerOf(channelId: string): Promise<string | undefined>;
  /** The channel that a thread lies in, where it can be known. */
  parentOf(channelId: string): Promise<string | undefined>;
  /** Remembers that a conversation is being held, before the store says so. */
  open(conversationId: string): void;
  isOpen(conversationId: string): boolean;
  /** Forgets a channel that has changed or is gone. */
  forget(channelId: string): void;
}

export function createPlaces(
  api: DiscordApi,
  typeInCache: (channelId: string) => number | undefined,
): Places {
  const channels = new Map<string, Promise<APIChannel>>();
  const conversations = new Map<string, true>();

  function read(channelId: string): Promise<APIChannel> {
    const known = channels.get(channelId);
    if (known !== undefined) return known;
    const reading = api.getChannel(channelId);
    remember(channels, channelId, reading);
    reading.catch(() => channels.delete(channelId));
    return reading;
  }

  return {
    async typeOf({ channel_id: id, channel_type: type }) {
      return type ?? typeInCache(id) ?? (await read(id)).type;
    },
    async ownerOf(channelId) {
      const channel = await read(channelId);
      return "owner_id" in channel && typeof channel.owner_id === "string" ? channel.owner_id : undefined;
    },
    async parentOf(channelId) {
      const [channel] = await Promise.allSettled([read(channelId)]);
      const parent =
        channel.status === "fulfilled" && "parent_id" in channel.value && channel.value.parent_id;
      return typeof parent === "string" ? parent : undefined;
    },
    open: (conversationId) => remember(conversations, conversationId, true),
    isOpen: (conversationId) => conversations.has(conversationId),
    forget(channelId) {
      channels.delete(channelId);
      conversations.delete(conversationIdOf(channelId));
    },
  };
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > mostRemembered && oldest !== undefined) map.delete(oldest);
}
