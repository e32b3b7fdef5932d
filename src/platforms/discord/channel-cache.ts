import type { Clock } from "../../core/clock.ts";
import type { APIChannel } from "discord.js";
import { LRUCache } from "lru-cache";
import { toConversationId } from "./address.ts";
import type { DiscordApi } from "./api.ts";

const maxEntries = 1000;
/** How long a thread waits for a setting of its channel. */
const maxLookupMs = 1000;

/** Facts about channels, threads included. */
export interface ChannelCache {
  /** Discord's type of the channel that a message was sent in. */
  typeOf(message: { readonly channel_id: string; readonly channel_type?: number }): Promise<number>;
  /** The user who opened a thread. */
  ownerOf(channelId: string): Promise<string | undefined>;
  /** The channel that contains a thread. `undefined`: it cannot be read. */
  parentOf(channelId: string): Promise<string | undefined>;
  /**
   * After how many minutes new threads of a channel are hidden, as people have set it. `undefined`: not set, or it
   * cannot be read within a second.
   */
  archiveMinutesOf(channelId: string): Promise<number | undefined>;
  /** `undefined`: it has none, or cannot be read. */
  nameOf(channelId: string): Promise<string | undefined>;
  /** What contains a channel. @throws ParleyError where it cannot be read */
  placeOf(channelId: string): Promise<{ readonly guildId?: string; readonly parentId?: string }>;
  /** Notes that a conversation that is answered whole was accepted, before the store knows it. */
  open(conversationId: string): void;
  isOpen(conversationId: string): boolean;
  /** Drops a channel that was changed or deleted. */
  forget(channelId: string): void;
}

/**
 * @param knownType the type of a channel that the gateway has named
 * @see {@link ChannelCache}
 */
export function createChannelCache(
  api: Pick<DiscordApi, "getChannel">,
  knownType: (channelId: string) => number | undefined,
  clock: Clock,
): ChannelCache {
  const channels = new LRUCache<string, Promise<APIChannel>>({ max: maxEntries });
  const conversations = new LRUCache<string, true>({ max: maxEntries });

  function read(channelId: string): Promise<APIChannel> {
    const known = channels.get(channelId);
    if (known !== undefined) return known;
    const reading = api.getChannel(channelId);
    channels.set(channelId, reading);
    // Failures are not cached.
    reading.catch(() => channels.delete(channelId));
    return reading;
  }

  async function placeOf(channelId: string) {
    const channel = await read(channelId);
    const guildId = "guild_id" in channel ? channel.guild_id : undefined;
    const parentId = "parent_id" in channel ? channel.parent_id : undefined;
    return {
      ...(typeof guildId === "string" ? { guildId } : {}),
      ...(typeof parentId === "string" ? { parentId } : {}),
    };
  }

  return {
    async typeOf({ channel_id: id, channel_type: type }) {
      return type ?? knownType(id) ?? (await read(id)).type;
    },
    async nameOf(channelId) {
      const [channel] = await Promise.allSettled([read(channelId)]);
      return channel.status === "fulfilled" ? (channel.value.name ?? undefined) : undefined;
    },
    async archiveMinutesOf(channelId) {
      const reading = read(channelId).then(
        (channel) =>
          "default_auto_archive_duration" in channel ? channel.default_auto_archive_duration : undefined,
        () => undefined,
      );
      return Promise.race([reading, clock.sleep(maxLookupMs).then(() => undefined)]);
    },
    async ownerOf(channelId) {
      const channel = await read(channelId);
      return "owner_id" in channel && typeof channel.owner_id === "string" ? channel.owner_id : undefined;
    },
    async parentOf(channelId) {
      const [place] = await Promise.allSettled([placeOf(channelId)]);
      return place.status === "fulfilled" ? place.value.parentId : undefined;
    },
    placeOf,
    open(conversationId) {
      conversations.set(conversationId, true);
    },
    isOpen: (conversationId) => conversations.get(conversationId) === true,
    forget(channelId) {
      channels.delete(channelId);
      conversations.delete(toConversationId(channelId));
    },
  };
}
