import { LRUCache } from "lru-cache";
import type { CommandCall } from "../../core/events.ts";
import { isOutage } from "../delivery/receive-patiently.ts";
import type { DiscordApi } from "./api.ts";
import type { ModalTarget } from "./ask-modal.ts";
import { readMessage, toAuthor, type Names } from "./incoming.ts";

type Subject = NonNullable<CommandCall["subject"]>;

const maxEntries = 500;

/**
 * Messages that a modal was opened for: Discord sends the message with the message command, but not with the
 * submitted modal.
 */
export interface ModalTargetCache {
  set(messageId: string, subject: Subject): void;
  /**
   * From memory, else from Discord. `undefined`: it was deleted, or the bot may not read it.
   * @throws ParleyError `platform-unreachable`
   */
  find(target: ModalTarget, names: Names): Promise<Subject | undefined>;
}

/** @see {@link ModalTargetCache} */
export function createModalTargetCache(api: Pick<DiscordApi, "getMessage">): ModalTargetCache {
  const subjects = new LRUCache<string, Subject>({ max: maxEntries });
  return {
    set(messageId, subject) {
      subjects.set(messageId, subject);
    },
    async find({ channelId, messageId }, names) {
      const known = subjects.get(messageId);
      if (known !== undefined) return known;
      const message = await api.getMessage(channelId, messageId).catch((error: unknown) => {
        if (isOutage(error)) throw error;
        return undefined;
      });
      return message === undefined
        ? undefined
        : { author: toAuthor(message.author), ...readMessage(message, names) };
    },
  };
}
