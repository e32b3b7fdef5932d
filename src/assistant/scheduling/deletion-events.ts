import { messageIds } from "../turn/stored-messages.ts";
import type { Running } from "./active-turn.ts";
import type { Archive, ConversationQueue, Conversations, Inbox } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";

export interface RemovalOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  /** The turn that runs in a conversation. */
  readonly runningIn: (conversationId: string) => Running | undefined;
  readonly log: Log;
}

/**
 * What people remove on a platform is removed here too. First the event is taken back, so that nothing is answered
 * from then on, then what is kept goes; both can be repeated, so a removal that breaks off is finished when the
 * platform tells of it again.
 */
export function createRemoval(
  options: RemovalOptions,
): Pick<Receiver, "messagesDeleted" | "conversationDeleted" | "placeDeleted"> {
  const { inbox, conversations, archive, queue, runningIn, log } = options;

  /** The conversations that the messages belong to: the platform's guess where it is known, and what the inbox says. */
  async function whereabouts(
    guess: string,
    keys: readonly string[],
  ): Promise<Map<string, readonly string[]>> {
    const [entries, isKnown] = await Promise.all([inbox.lookUp(keys), conversations.exists(guess)]);
    const found = new Map<string, readonly string[]>(isKnown ? [[guess, keys]] : []);
    for (const { event } of entries) {
      const others = found.get(event.conversationId) ?? [];
      if (!others.includes(event.key)) found.set(event.conversationId, [...others, event.key]);
    }
    return found;
  }

  async function removeFrom(conversationId: string, keys: readonly string[]): Promise<void> {
    const ids = keys.map((key) => messageIds.user(key));
    const isStopped = runningIn(conversationId)?.withdraw(keys) === true;
    await archive.removeMessages(conversationId, { ids, shownAs: keys });
    if (!isStopped) return;
    // The turn may have been about to keep a file or the reply's address: what it leaves goes when it has ended.
    queue
      .run(conversationId, async () => {
        await inbox.withdraw(keys);
        await archive.removeMessages(conversationId, { ids, withLooseFiles: true });
      })
      .catch((error: unknown) =>
        log.error({ conversation: conversationId, err: error }, "what a stopped turn left was not removed"),
      );
  }

  async function conversationDeleted(conversationId: string): Promise<void> {
    const [open, isKnown] = await Promise.all([inbox.listOpen(), conversations.exists(conversationId)]);
    const keys = open.flatMap(({ event }) => (event.conversationId === conversationId ? [event.key] : []));
    if (!isKnown && keys.length === 0) return;
    if (keys.length > 0) await inbox.withdraw(keys);
    runningIn(conversationId)?.withdraw(keys);
    await queue.run(conversationId, async () => {
      if (keys.length > 0) await inbox.withdraw(keys);
      const { messages } = await archive.deleteConversation(conversationId);
      log.info({ conversation: conversationId, messages }, "a conversation was removed");
    });
  }

  return {
    async messagesDeleted(conversationId, keys) {
      const places = await whereabouts(conversationId, keys);
      if (places.size === 0) return;
      await inbox.withdraw([...new Set([...places.values()].flat())]);
      for (const [id, theirs] of places) await removeFrom(id, theirs);
    },
    conversationDeleted,
    async placeDeleted(place) {
      const platform = place.slice(0, place.indexOf(":") + 1);
      for (const { conversationId } of await conversations.list(platform, { max: Infinity })) {
        const { within } = await conversations.settings(conversationId);
        if (within?.includes(place) === true) await conversationDeleted(conversationId);
      }
    },
  };
}
