import type { Receiver } from "../../core/platform.ts";
import type { SpendingLedger } from "../../core/spending.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Archive, ConversationQueue, Conversations } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { messageIds } from "../turn/stored-messages.ts";
import type { PendingTurn } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

interface DeletionOptions {
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "schedule">;
  /** Erases what people set for places. */
  readonly settings: { erase(place: string): Promise<void> };
  readonly spending: Pick<SpendingLedger, "countedPeople" | "forgetPeople">;
  readonly log: Log;
}

/** The receiver's methods for what people delete. */
export interface Deletions extends Pick<Receiver, "conversationDeleted" | "placeDeleted" | "peopleDeleted"> {
  /** A message that an edit has addressed to others, with `isSaidToOthers`, can still be read in its room. */
  readonly messagesDeleted: (
    conversationId: string,
    keys: readonly string[],
    others?: ReadonlyMap<string, readonly string[]>,
    how?: { readonly isSaidToOthers?: boolean },
  ) => Promise<void>;
}

/**
 * Deletes here what people delete on a platform. It first withdraws the event, so that nothing is answered
 * any more, and then erases the data. Both are idempotent, so a redelivery finishes an interrupted deletion.
 */
export function createDeletionEvents(options: DeletionOptions): Deletions {
  const { inbox, conversations, archive, queue, scheduler, settings, spending, log } = options;

  /** Groups keys by conversation: those that the platform names and that exist, and those of the inbox. */
  async function findConversations(
    named: ReadonlyMap<string, readonly string[]>,
    keys: readonly string[],
  ): Promise<Map<string, readonly string[]>> {
    const [entries, existing] = await Promise.all([
      inbox.lookUp(keys),
      conversations.existing([...named.keys()]),
    ]);
    const found = new Map<string, readonly string[]>(existing.map((id) => [id, named.get(id) ?? []]));
    for (const { event } of entries) {
      const others = found.get(event.conversationId) ?? [];
      if (!others.includes(event.key)) found.set(event.conversationId, [...others, event.key]);
    }
    return found;
  }

  async function deleteFrom(
    conversationId: string,
    keys: readonly string[],
    isSaidToOthers: boolean,
  ): Promise<void> {
    const inRoom = isSaidToOthers ? [] : keys.map((key) => messageIds.room(key));
    const ids = [...keys.map((key) => messageIds.user(key)), ...inRoom];
    const isCancelled = scheduler.activeIn(conversationId)?.deleteMessages(keys) === true;
    await archive.removeMessages(conversationId, { ids, shownAs: keys });
    if (!isCancelled) return;
    // The cancelled turn may still store a file or the reply's address, which are erased after its end.
    queue
      .run(conversationId, async () => {
        await inbox.withdraw(keys, { keepsReplies: true });
        await archive.removeMessages(conversationId, { ids, withLooseFiles: true });
      })
      .catch((error: unknown) =>
        log.error({ conversation: conversationId, err: error }, "leftovers of a cancelled turn not erased"),
      );
  }

  /**
   * Finds open turns that have started and whose reply must be ended, because their process may have died. A
   * turn that also answers other open messages is left out.
   */
  async function findBegun(keys: readonly string[]): Promise<PendingTurn[]> {
    const begun: PendingTurn[] = [];
    for (const { event, turn } of await inbox.lookUp(keys)) {
      if (turn === undefined || !(await inbox.isOpen(event.key))) continue;
      const others = turn.keys.filter((key) => !keys.includes(key));
      if ((await Promise.all(others.map((key) => inbox.isOpen(key)))).includes(true)) continue;
      begun.push({ event, progress: turn, others: [], isWithdrawn: true });
    }
    return begun;
  }

  async function conversationDeleted(conversationId: string): Promise<void> {
    const [open, exists] = await Promise.all([
      inbox.listOpenIn(conversationId),
      conversations.exists(conversationId),
    ]);
    const keys = open.map(({ event }) => event.key);
    if (!exists && keys.length === 0) return;
    if (keys.length > 0) await inbox.withdraw(keys);
    scheduler.activeIn(conversationId)?.deleteMessages(keys);
    await queue.run(conversationId, async () => {
      if (keys.length > 0) await inbox.withdraw(keys);
      const { messages } = await archive.deleteConversation(conversationId);
      log.info({ conversation: conversationId, messages }, "conversation deleted");
    });
  }

  return {
    async messagesDeleted(conversationId, keys, others = new Map(), { isSaidToOthers = false } = {}) {
      const found = await findConversations(new Map([...others, [conversationId, keys]]), keys);
      if (found.size === 0) return;
      const withdrawn = [...new Set([...found.values()].flat())];
      const begun = await findBegun(withdrawn);
      await inbox.withdraw(withdrawn, { keepsReplies: true });
      for (const [id, theirs] of found) await deleteFrom(id, theirs, isSaidToOthers);
      // A turn that still runs here or in another process ends its reply itself first. Recovery finds it too.
      for (const turn of begun) scheduler.schedule(turn);
    },
    conversationDeleted,
    async placeDeleted(place) {
      await settings.erase(place);
      // The places of a conversation are stored with its first message, when its turn has begun.
      const [stored, open] = await Promise.all([conversations.listWithin(place), inbox.listOpen()]);
      const begun = open.flatMap(({ event }) =>
        event.within?.includes(place) === true ? [event.conversationId] : [],
      );
      for (const conversationId of new Set([...stored, ...begun])) await conversationDeleted(conversationId);
    },
    async peopleDeleted(idPrefix) {
      // Settings are erased first, because a repetition would find no counted people.
      const people = await spending.countedPeople(idPrefix);
      for (const person of people) await settings.erase(person);
      await spending.forgetPeople(idPrefix);
      log.info({ people: people.length }, "people deleted");
    },
  };
}
