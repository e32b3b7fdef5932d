import type { GatewayMessageCreateDispatchData } from "discord.js";
import type { AnswerRule } from "../../../core/addressee.ts";
import type { PlaceSettings, Receiver } from "../../../core/platform.ts";
import { isDirectType, isThreadType, toChannelPlace, toConversationId, toGuildPlace } from "../address.ts";
import type { Directory } from "../transport/directory.ts";

/** Where a message is. */
export type PlacedMessage = Pick<GatewayMessageCreateDispatchData, "channel_id" | "guild_id">;

/** Says how messages are answered, by where they are. Contract: all may throw ParleyError of the store. */
interface AnswerRules {
  /** How a message is answered. @param isCall whether it calls the bot */
  of(message: PlacedMessage, channelType: number, isCall: boolean): Promise<AnswerRule>;
  /** How a thread is answered. By default people talk to the bot in a thread that it was given, or opened. */
  inThread(
    message: PlacedMessage,
    parent: string | undefined,
    channelType: number,
    isCall: boolean,
  ): Promise<AnswerRule>;
  /** Returns how the channel of a message is answered. It is one read of the store, for most messages. */
  inChannel(message: PlacedMessage): Promise<PlaceSettings>;
  /** Whether the bot opened a thread. */
  isOwnThread(channelId: string): Promise<boolean>;
}

export function createAnswerRules(
  receiver: Pick<Receiver, "answersTo" | "placeSettings">,
  channels: Pick<Directory, "ownerOf" | "parentOf">,
  botId: () => string,
): AnswerRules {
  async function inChannel(message: PlacedMessage): Promise<PlaceSettings> {
    const { guild_id: guildId, channel_id: channelId } = message;
    return receiver.placeSettings({
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      channel: toChannelPlace(channelId),
    });
  }

  async function inThread(
    { channel_id: channelId, guild_id: guildId }: PlacedMessage,
    parent: string | undefined,
    channelType: number,
    isCall: boolean,
  ): Promise<AnswerRule> {
    if (isDirectType(channelType)) return { answerTo: "every-message" };
    const rule = await receiver.answersTo(toConversationId(channelId), {
      ...(guildId === undefined ? {} : { server: toGuildPlace(guildId) }),
      ...(parent === undefined ? {} : { channel: toChannelPlace(parent) }),
    });
    if (rule !== undefined) return rule;
    const [isOwn] = await Promise.allSettled([isOwnThread(channelId)]);
    // Whoever calls the bot is answered, whoever opened the thread.
    if (isOwn.status === "rejected" && !isCall) throw isOwn.reason;
    const isOurs = isOwn.status === "fulfilled" && isOwn.value;
    return { answerTo: isOurs ? "addressed" : "mentions", isDefault: true };
  }

  async function isOwnThread(channelId: string): Promise<boolean> {
    return (await channels.ownerOf(channelId)) === botId();
  }

  return {
    inChannel,
    inThread,
    isOwnThread,
    async of(message, channelType, isCall) {
      if (!isThreadType(channelType) && !isDirectType(channelType)) return inChannel(message);
      const parent = isThreadType(channelType) ? await channels.parentOf(message.channel_id) : undefined;
      return inThread(message, parent, channelType, isCall);
    },
  };
}
