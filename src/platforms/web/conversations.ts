import type { Log } from "../../core/telemetry.ts";
import type { ConversationHistory } from "../../core/platform.ts";
import { isRunning, mergeItems, type Feed, type Feeds } from "./feed.ts";
import { toItem, type ItemView, type SnapshotView } from "./views.ts";

/** Messages that are looked at to find the stored form of those which have just ended. */
const recentMessages = 30;
/** A read may come back this much shorter than asked although there is more: retried answers are left out. */
const leftOut = 10;

/** Joins what is kept with what is under way. */
export function createConversationViews(history: ConversationHistory, feeds: Feeds, log: Log) {
  return {
    /**
     * Reads the history; the answer joins it with what is live, at once.
     * @throws ParleyError `store-unavailable`
     */
    async readHistory(conversationId: string, maxMessages: number): Promise<() => SnapshotView> {
      const messages = await history.history(conversationId, { maxMessages });
      const stored = messages.map((message) => toItem(conversationId, message));
      return () => ({
        items: mergeItems(stored, feeds.of(conversationId)),
        mayHaveMore: messages.length > leftOut && messages.length >= maxMessages - leftOut,
      });
    },

    /**
     * Puts the stored form in the place of messages and answers that have ended. Where the store cannot be read
     * the live form stays. Contract: does not throw.
     */
    async settle(conversationId: string): Promise<void> {
      try {
        const messages = await history.history(conversationId, { maxMessages: recentMessages });
        const stored = messages.map((message) => toItem(conversationId, message));
        settleItems(feeds.of(conversationId), stored);
      } catch (error) {
        log.warn({ conversationId, err: error }, "the page keeps showing what it could not read back");
      }
    },
  };
}

function settleItems(feed: Feed, stored: readonly ItemView[]): void {
  const storedIds = new Set(stored.map((item) => item.id));
  const oldestLive = Math.min(...feed.items().map((item) => item.createdAt));
  for (const [index, item] of stored.entries()) {
    const live = feed.get(item.id) ?? (feed.isTold(item.id) ? undefined : nameless(feed, item, storedIds));
    if (live !== undefined) {
      // What was typed stays as it was typed; the history keeps a command's words without the command.
      const isCommand = item.role === "user" && live.text.startsWith("/");
      if (!isRunning(live)) feed.settle(live.id, isCommand ? { ...item, text: live.text } : item);
    } else if (!feed.isTold(item.id) && item.createdAt >= oldestLive - 60_000) {
      const next = stored.slice(index + 1).find((later) => feed.isTold(later.id));
      feed.insert(item, next?.id ?? feed.items().find((other) => isRunning(other))?.id);
    }
  }
}

/** An answer that has ended here and is kept under another message of its burst. */
function nameless(feed: Feed, item: ItemView, storedIds: ReadonlySet<string>): ItemView | undefined {
  if (item.role !== "assistant") return undefined;
  return feed
    .items()
    .find(
      (live) =>
        live.role === "assistant" &&
        !isRunning(live) &&
        !storedIds.has(live.id) &&
        live.createdAt <= item.createdAt,
    );
}
