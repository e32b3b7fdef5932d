import type { Receiver } from "../../core/platform.ts";
import { toChannelPlace, toConversationId, toEventKey, toGuildPlace } from "./address.ts";
import type { ChannelCache } from "./channel-cache.ts";
import type { OrderedChanges } from "./ordered-changes.ts";
import type { ReplyChains } from "./reply-chains.ts";

const left = "deletion not applied: the deleted content is still stored";

/** Handles the gateway's deletion events, which contain ids only. Contract: none of them throws. */
export interface DeletionEvents {
  /** MESSAGE_DELETE and MESSAGE_DELETE_BULK. */
  messages(channelId: string, messageIds: readonly string[]): void;
  /** THREAD_DELETE and CHANNEL_DELETE. There are no events for the threads of a deleted channel. */
  channel(channelId: string): void;
  /** GUILD_DELETE: the server was deleted, or the bot removed from it. Not for an outage. */
  guild(guildId: string): void;
}

/**
 * Passes deletions on to the receiver. Deletions while the bot is offline are never delivered.
 */
export function createDeletionEvents(options: {
  readonly receiver: Receiver;
  readonly channels: ChannelCache;
  readonly chains: Pick<ReplyChains, "conversationOf">;
  readonly changes: OrderedChanges;
}): DeletionEvents {
  const { receiver, channels, chains, changes } = options;

  /** A mention in a channel is the first message of the thread that has its id. */
  function otherConversations(messageIds: readonly string[]): ReadonlyMap<string, readonly string[]> {
    const others = new Map<string, string[]>();
    for (const id of messageIds) {
      for (const conversationId of new Set([toConversationId(id), chains.conversationOf(id)])) {
        if (conversationId === undefined) continue;
        others.set(conversationId, [...(others.get(conversationId) ?? []), toEventKey(id)]);
      }
    }
    return others;
  }

  return {
    messages(channelId, messageIds) {
      const keys = messageIds.map((id) => toEventKey(id));
      const apply = () =>
        receiver.messagesDeleted(toConversationId(channelId), keys, otherConversations(messageIds));
      changes.pass(channelId, apply, left);
    },
    channel(channelId) {
      channels.forget(channelId);
      const apply = async (): Promise<void> => {
        await receiver.conversationDeleted(toConversationId(channelId));
        await receiver.placeDeleted(toChannelPlace(channelId));
      };
      changes.pass(channelId, apply, left);
    },
    guild(guildId) {
      changes.pass(guildId, () => receiver.placeDeleted(toGuildPlace(guildId)), left);
    },
  };
}
