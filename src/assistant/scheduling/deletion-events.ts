import { toNotice } from "../../core/error-messages.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent, ReplyAddress } from "../../core/events.ts";
import type { Platform, Receiver } from "../../core/platform.ts";
import type { Archive, ConversationQueue, Conversations, Inbox } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { messageIds } from "../turn/stored-messages.ts";
import { backoffMs, retry } from "../../support/retry.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { storedIn } from "./pending-turn.ts";
import { isOutage } from "./recovery.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

/** How long ending such a reply is tried while the store or the platform is unavailable, in milliseconds. */
const endForMs = 60 * 60_000;
const backoff = { baseMs: 500, maxMs: 10_000 };

/** A reply that no process of a withdrawn turn will end. */
interface Orphan {
  readonly event: IncomingEvent;
  readonly address: ReplyAddress;
  /** What ran in the conversation then: this turn or another one. */
  readonly active: ActiveTurn | undefined;
}

export interface DeletionOptions {
  readonly platforms: ReadonlyMap<string, Pick<Platform, "openReply">>;
  readonly inbox: Inbox;
  readonly conversations: Conversations;
  readonly archive: Archive;
  readonly queue: ConversationQueue;
  readonly scheduler: Pick<TurnScheduler, "activeIn">;
  /** What people set for places. */
  readonly settings: { erase(place: string): Promise<void> };
  readonly log: Log;
}

/**
 * Deletes here what people delete on a platform. The event is withdrawn first, so that nothing is answered from then
 * on, then what is stored is erased. Both are idempotent: an interrupted deletion is finished when it is delivered again.
 */
export function createDeletionEvents(
  options: DeletionOptions,
): Pick<Receiver, "messagesDeleted" | "conversationDeleted" | "placeDeleted"> {
  const { inbox, conversations, archive, queue, scheduler, settings, platforms, log } = options;

  /** Keys by conversation: the one the platform names, where it exists, and those the inbox knows. */
  async function findConversations(
    named: string,
    keys: readonly string[],
  ): Promise<Map<string, readonly string[]>> {
    const [entries, exists] = await Promise.all([inbox.lookUp(keys), conversations.exists(named)]);
    const found = new Map<string, readonly string[]>(exists ? [[named, keys]] : []);
    for (const { event } of entries) {
      const others = found.get(event.conversationId) ?? [];
      if (!others.includes(event.key)) found.set(event.conversationId, [...others, event.key]);
    }
    return found;
  }

  async function deleteFrom(conversationId: string, keys: readonly string[]): Promise<void> {
    const ids = keys.map((key) => messageIds.user(key));
    const isCancelled = scheduler.activeIn(conversationId)?.deleteMessages(keys) === true;
    await archive.removeMessages(conversationId, { ids, shownAs: keys });
    if (!isCancelled) return;
    // The cancelled turn may still store a file or the reply's address: they are erased when it has ended.
    queue
      .run(conversationId, async () => {
        await inbox.withdraw(keys);
        await archive.removeMessages(conversationId, { ids, withLooseFiles: true });
      })
      .catch((error: unknown) =>
        log.error({ conversation: conversationId, err: error }, "leftovers of a cancelled turn not erased"),
      );
  }

  /**
   * Open turns that began: their process may have died, and nobody would end their replies once their events are
   * withdrawn. The active turn ends its own, and other messages of a batch are answered in its reply.
   */
  async function findOrphans(keys: readonly string[]): Promise<Orphan[]> {
    const orphans: Orphan[] = [];
    for (const { event, turn } of await inbox.lookUp(keys)) {
      if (turn === undefined || !(await inbox.isOpen(event.key))) continue;
      const others = turn.keys.filter((key) => !keys.includes(key));
      if ((await Promise.all(others.map((key) => inbox.isOpen(key)))).includes(true)) continue;
      orphans.push({ event, address: turn.address, active: scheduler.activeIn(storedIn(event)) });
    }
    return orphans;
  }

  async function endOrphan({ event, address, active }: Orphan): Promise<void> {
    if (active?.isDeleted(event.key) === true) return;
    const platform = platforms.get(event.platform);
    if (platform === undefined) return;
    const because = new ParleyError("cancelled", "its message was deleted", {
      detail: { because: "deleted" },
    });
    // After a run of another process, which ends its own reply.
    const end = (): Promise<void> =>
      queue.run(storedIn(event), async () => {
        const reply = platform.openReply(address, { isResumed: true, saveAddress: () => Promise.resolve() });
        await reply.show();
        await reply.finish({ notices: [toNotice(because)] });
      });
    // Its event is withdrawn, so that no recovery finds it.
    const deadline = performance.now() + endForMs;
    await retry(end, {
      delayMs: (error, attempt) =>
        isOutage(error) && !isParleyError(error, "stopping") && performance.now() < deadline
          ? backoffMs(attempt, backoff)
          : undefined,
    });
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
    async messagesDeleted(conversationId, keys) {
      const found = await findConversations(conversationId, keys);
      if (found.size === 0) return;
      const withdrawn = [...new Set([...found.values()].flat())];
      const orphans = await findOrphans(withdrawn);
      await inbox.withdraw(withdrawn);
      for (const [id, theirs] of found) await deleteFrom(id, theirs);
      for (const orphan of orphans)
        void endOrphan(orphan).catch((error: unknown) =>
          log.warn({ key: orphan.event.key, err: error }, "reply to a deleted message not ended"),
        );
    },
    conversationDeleted,
    async placeDeleted(place) {
      await settings.erase(place);
      for (const conversationId of await conversations.listWithin(place))
        await conversationDeleted(conversationId);
    },
  };
}
