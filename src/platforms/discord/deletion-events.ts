import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { channelPlace, conversationIdOf, guildPlace, keyOfMessage } from "./address.ts";
import type { Places } from "./channel-cache.ts";

const retryMs = 5000;
const maxTries = 24;

/** What people remove on Discord, as the gateway tells it: ids and nothing else. */
export interface Removals {
  /** MESSAGE_DELETE and MESSAGE_DELETE_BULK. Contract, of all: must not throw. */
  messages(channelId: string, messageIds: readonly string[]): void;
  /** THREAD_DELETE and CHANNEL_DELETE: a channel's threads go with it, untold. */
  channel(channelId: string): void;
  /** GUILD_DELETE: the server is gone, or the bot was removed from it. Not for an outage. */
  guild(guildId: string): void;
}

/**
 * Passes removals on. Discord tells each once, so they are tried for two minutes where the store is away; what is
 * removed while the bot is away itself is never told.
 */
export function createRemovals(options: {
  readonly receiver: Receiver;
  readonly places: Places;
  /** Resolves when what was said in the channel before is with the receiver. */
  readonly caughtUp: (channelId: string) => Promise<void>;
  readonly signal: AbortSignal;
  readonly log: Log;
}): Removals {
  const { receiver, places, signal, log } = options;

  async function persist(channelId: string, remove: () => Promise<void>): Promise<void> {
    await options.caughtUp(channelId);
    for (let tries = 1; ; tries += 1) {
      try {
        return await remove();
      } catch (error) {
        if (signal.aborted || tries >= maxTries || !isParleyError(error, "store-unavailable")) {
          log.error({ channel: channelId, err: error }, "what was removed on Discord is still kept here");
          return;
        }
        await sleepUnlessAborted(retryMs, signal);
      }
    }
  }

  return {
    messages(channelId, messageIds) {
      void persist(channelId, async () => {
        await receiver.messagesDeleted(
          conversationIdOf(channelId),
          messageIds.map((id) => keyOfMessage(id)),
        );
        // A mention in a channel is the first message of the thread that has its id.
        for (const id of messageIds) await receiver.messagesDeleted(conversationIdOf(id), [keyOfMessage(id)]);
      });
    },
    channel(channelId) {
      places.forget(channelId);
      void persist(channelId, async () => {
        await receiver.conversationDeleted(conversationIdOf(channelId));
        await receiver.placeDeleted(channelPlace(channelId));
      });
    },
    guild(guildId) {
      void persist(guildId, () => receiver.placeDeleted(guildPlace(guildId)));
    },
  };
}
