import { ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Conversations, StoredMessage } from "../../core/storage.ts";

/** The conversations of people who may not see what was said before. */
export interface WithheldHistory {
  /** As the store has them, with `recent` of what these people said and what they were answered. */
  readonly conversations: Conversations;
  /** Whether there is anything in a conversation that they are not to be told. */
  hasAny(conversationId: string): Promise<boolean>;
}

/** Messages that are looked through for what is withheld. */
const maxLookedAt = 200;

/**
 * What is to be withheld from those who ask in these events. `undefined`: nothing, since the platform lets all of them
 * see what was said before.
 * @see {@link Origin.readsHistory}
 */
export function withheldHistory(
  conversations: Conversations,
  events: readonly IncomingEvent[],
): WithheldHistory | undefined {
  if (!events.some(({ origin }) => origin?.readsHistory === false)) return undefined;
  const people = new Set(events.map(({ author }) => author.id));

  function ownOf(messages: readonly StoredMessage[]): StoredMessage[] {
    const said = messages.filter(({ author, room }) => room === undefined && people.has(author?.id ?? ""));
    const turns = new Set(said.map(({ turnKey }) => turnKey));
    return messages.filter((message) =>
      message.role === "user" ? said.includes(message) : turns.has(message.turnKey),
    );
  }

  return {
    conversations: {
      ...conversations,
      recent: async (conversationId, bounds) => ownOf(await conversations.recent(conversationId, bounds)),
    },
    async hasAny(conversationId) {
      const all = await conversations.recent(conversationId, { maxMessages: maxLookedAt });
      return ownOf(all).length < all.length;
    },
  };
}

/** Says that they may not see it. */
export function historyWithheld(): ParleyError {
  return new ParleyError("platform-forbidden", "the person may not read the history", {
    detail: { because: "history", permission: "history-of-the-asker" },
  });
}
