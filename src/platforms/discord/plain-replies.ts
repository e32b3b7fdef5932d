import { LRUCache } from "lru-cache";
import type { Log } from "../../core/telemetry.ts";
import type { DiscordApi } from "./api.ts";
import { discordCode, errorCodes } from "./errors.ts";

/** Channels whose missing permission was logged. */
const maxLogged = 1000;

/**
 * The API, whose replies are posted as ordinary messages where Discord refuses them: a reply needs the permission Read
 * Message History. That is logged once for each channel.
 */
export function withPlainReplies(api: DiscordApi, log: Log): DiscordApi {
  const logged = new LRUCache<string, true>({ max: maxLogged });
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
