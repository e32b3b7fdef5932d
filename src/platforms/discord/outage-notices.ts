import { LRUCache } from "lru-cache";
import type { APIMessage } from "discord.js";
import type { Clock } from "../../core/clock.ts";
import { toNotice } from "../../core/error-messages.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Receiver } from "../../core/platform.ts";
import { languages } from "../../words/languages.ts";
import { inLanguage } from "../../words/translate.ts";
import type { Log } from "../../core/telemetry.ts";
import { retryPlatformCall } from "../delivery/platform-retry.ts";
import { toEventKey } from "./address.ts";
import type { DiscordApi } from "./api.ts";
import { toSentence } from "./content.ts";
import { discordCode, errorCodes } from "./errors.ts";

/** How long taking a notice back is tried, in milliseconds. */
const takeBackForMs = 10 * 60_000;
const maxSettling = 1000;

/** Tells people that messages are not taken for the time being, and keeps these notices true. */
export interface OutageNotices {
  /**
   * Replies to the message, once for all instances, then settles the notice in the background.
   * @throws ParleyError where nothing could be said
   */
  tell(message: Pick<APIMessage, "id" | "channel_id">, error: unknown): Promise<void>;
  /**
   * Makes a notice true that the bot has posted: its message is not answered from now on; or, where it was accepted, by
   * whichever instance, the notice is deleted. All else is ignored. Contract: must not throw.
   * @param message by the bot
   */
  settle(message: APIMessage): void;
}

/**
 * Who tells a person may be cut off from the store, stopped or killed before the store has decided. So each instance
 * settles the notices that it sees, and the look-up of missed messages those of earlier runs.
 */
export function createOutageNotices(options: {
  readonly api: Pick<DiscordApi, "createMessage" | "deleteMessage">;
  readonly receiver: Pick<Receiver, "refuse">;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}): OutageNotices {
  const { api, receiver, signal, clock, log } = options;
  /** Ids of notices that are, or were, settled here. */
  const settling = new LRUCache<string, true>({ max: maxSettling });

  async function takeBack({ id, channel_id: channelId }: APIMessage): Promise<void> {
    try {
      const deadline = clock.monotonic() + takeBackForMs;
      await retryPlatformCall(() => api.deleteMessage(channelId, id), deadline, signal, clock);
    } catch (error) {
      // Another instance was faster.
      if (discordCode(error) !== errorCodes.unknownMessage) throw error;
    }
  }

  async function settle(notice: APIMessage, messageId: string): Promise<void> {
    try {
      if ((await receiver.refuse(toEventKey(messageId))) === "accepted") await takeBack(notice);
    } catch (error) {
      settling.delete(notice.id);
      log.warn({ message: messageId, err: error }, "notice not settled");
    }
  }

  function settleOnce(notice: APIMessage, messageId: string): void {
    if (settling.has(notice.id)) return;
    settling.set(notice.id, true);
    void settle(notice, messageId);
  }

  return {
    async tell({ id, channel_id: channelId }, error) {
      // The nonce keeps several instances from telling it several times.
      const notice = await api.createMessage(channelId, {
        ...toSentence(toNotice(error)),
        message_reference: { message_id: id, fail_if_not_exists: false },
        nonce: id,
        enforce_nonce: true,
      });
      settleOnce(notice, id);
    },
    settle(message) {
      const messageId = message.message_reference?.message_id;
      if (messageId !== undefined && isOutageText(message.content)) settleOnce(message, messageId);
    },
  };
}

/** As Discord shows them, in every language; written when the first message of the bot is looked at. */
let outageTexts: ReadonlySet<string> | undefined;

function isOutageText(content: string): boolean {
  outageTexts ??= new Set(
    languages.flatMap((language) =>
      [new ParleyError("store-unavailable", "notice"), new Error("notice")].map((error) =>
        inLanguage(language, () => toSentence(toNotice(error)).content),
      ),
    ),
  );
  return outageTexts.has(content);
}
