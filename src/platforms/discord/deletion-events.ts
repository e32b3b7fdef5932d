import { isParleyError } from "../../core/errors.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Log } from "../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { toChannelPlace, toConversationId, toEventKey, toGuildPlace } from "./address.ts";
import type { ChannelCache } from "./channel-cache.ts";
import type { ReplyChains } from "./reply-chains.ts";

const retryMs = 5000;
const maxAttempts = 24;

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
 * Passes deletions on to the receiver. Discord sends each once, so they are retried for two minutes while the store
 * is unavailable. Deletions while the bot is offline are never delivered.
 */
export function createDeletionEvents(options: {
  readonly receiver: Receiver;
  readonly channels: ChannelCache;
  readonly chains: Pick<ReplyChains, "conversationOf">;
  /** Resolves when the receiver has all earlier messages of the channel. */
  readonly caughtUp: (channelId: string) => Promise<void>;
  readonly signal: AbortSignal;
  readonly log: Log;
}): DeletionEvents {
  const { receiver, channels, chains, signal, log } = options;

  /** Fire and forget. `id`: of the channel or server. */
  async function pass(id: string, remove: () => Promise<void>): Promise<void> {
    await options.caughtUp(id);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await remove();
      } catch (error) {
        if (signal.aborted || attempt >= maxAttempts || !isParleyError(error, "store-unavailable")) {
          log.error({ id, err: error }, "deletion not applied: the deleted content is still stored");
          return;
        }
        await sleepUnlessAborted(retryMs, signal);
      }
    }
  }

  return {
    messages(channelId, messageIds) {
      void pass(channelId, async () => {
        await receiver.messagesDeleted(
          toConversationId(channelId),
          messageIds.map((id) => toEventKey(id)),
        );
        // A mention in a channel is the first message of the thread that has its id.
        for (const id of messageIds) {
          await receiver.messagesDeleted(toConversationId(id), [toEventKey(id)]);
          const root = chains.conversationOf(id);
          if (root !== undefined) await receiver.messagesDeleted(root, [toEventKey(id)]);
        }
      });
    },
    channel(channelId) {
      channels.forget(channelId);
      void pass(channelId, async () => {
        await receiver.conversationDeleted(toConversationId(channelId));
        await receiver.placeDeleted(toChannelPlace(channelId));
      });
    },
    guild(guildId) {
      void pass(guildId, () => receiver.placeDeleted(toGuildPlace(guildId)));
    },
  };
}
