import { LRUCache } from "lru-cache";
import { hiddenContentNotice } from "../../core/error-messages.ts";
import type { Log } from "../../core/telemetry.ts";
import type { DiscordApi } from "./api.ts";
import { languages } from "../../words/languages.ts";
import { toSentence, type DiscordContent } from "./content.ts";
import { inLanguage } from "../../words/translate.ts";

const maxChannels = 5000;
/** Messages that are searched for a notice of an earlier run. */
const maxRead = 50;

/** A message that arrived without its content. */
export interface HiddenMessage {
  readonly id: string;
  readonly channel_id: string;
}

/** Tells people that their messages cannot be read. */
export interface HiddenContentNotices {
  /**
   * Replies once in each thread or channel, where the application has no Message Content Intent. Resolves when that is
   * done. Contract: must not throw.
   */
  tell(message: HiddenMessage): Promise<undefined>;
}

/**
 * A notice of an earlier run is found among the last messages, and the nonce keeps several instances from telling it
 * twice.
 */
export function createHiddenContentNotices(options: {
  readonly api: Pick<DiscordApi, "createMessage" | "listMessages">;
  /** Whether messages have their content: then there was nothing to read in them. */
  readonly readsContents: () => boolean;
  readonly botId: () => string;
  readonly log: Log;
}): HiddenContentNotices {
  const { api, log } = options;
  const told = new LRUCache<string, true>({ max: maxChannels });

  async function isTold(channelId: string): Promise<boolean> {
    const messages = await api.listMessages(channelId, { limit: maxRead });
    const notices = languages.map((language) => inLanguage(language, toNotice).content);
    return messages.some(({ author, content }) => author.id === options.botId() && notices.includes(content));
  }

  return {
    async tell({ id, channel_id: channelId }) {
      if (options.readsContents() || told.has(channelId)) return undefined;
      told.set(channelId, true);
      log.warn({ channel: channelId }, "message not readable: the Message Content Intent is off");
      try {
        if (await isTold(channelId)) return undefined;
        await api.createMessage(channelId, {
          ...toNotice(),
          message_reference: { message_id: id, fail_if_not_exists: false },
          nonce: `c${channelId}`,
          enforce_nonce: true,
        });
      } catch (error) {
        log.info({ channel: channelId, err: error }, "notice of hidden contents not delivered");
      }
      return undefined;
    },
  };
}

function toNotice(): DiscordContent {
  return toSentence(hiddenContentNotice());
}
