import type { CommandCall } from "../../core/events.ts";
import type { DiscordApi } from "./api.ts";
import type { ModalTarget } from "./ask-modal.ts";
import { readMessage, toAuthor, type Names } from "./incoming.ts";

type Subject = NonNullable<CommandCall["subject"]>;

const most = 500;

/** Messages that a form was opened on: Discord sends them with the command and not again with the form. */
export interface Subjects {
  keep(messageId: string, subject: Subject): void;
  /** From memory, else from Discord. `undefined`: it is out of reach. */
  find(message: ModalTarget, names: Names): Promise<Subject | undefined>;
}

export function createSubjects(api: DiscordApi): Subjects {
  const kept = new Map<string, Subject>();
  return {
    keep(messageId, subject) {
      kept.set(messageId, subject);
      const [oldest] = kept.keys();
      if (kept.size > most && oldest !== undefined) kept.delete(oldest);
    },
    async find({ channelId, messageId }, names) {
      const known = kept.get(messageId);
      if (known !== undefined) return known;
      const message = await api.getMessage(channelId, messageId).catch(() => undefined);
      return message === undefined
        ? undefined
        : { author: toAuthor(message.author), ...readMessage(message, names) };
    },
  };
}
