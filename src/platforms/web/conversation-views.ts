import { toCommandLine } from "../../core/command-input.ts";
import type { Command } from "../../core/command.ts";
import type { Attachment, IncomingEvent } from "../../core/events.ts";
import type { OpenQuestion, ConversationHistory } from "../../core/platform.ts";
import { ratingBy } from "../../core/raters.ts";
import type { StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { nextPiece } from "../../support/pieces.ts";
import { createFairSemaphore } from "../../support/queues.ts";
import { toItemId, toTurnKey, ownerOf, privateCallPrefix } from "./address.ts";
import { isRunning, withLive, type Feed, type Feeds } from "./feed.ts";
import type { UploadMeta } from "./uploads.ts";
import { type FileView, type ItemView, toFileView, toItem, type SnapshotView } from "./views.ts";

/** How many messages are read to find the stored form of items that have just ended. */
const recentMessages = 30;
/** A read may return this many fewer messages although there are more, without attempts that were retried. */
const maxLeftOut = 10;
/** Stored messages older than the oldest live item by more than this are not sent as new, in milliseconds. */
const maxLagMs = 60_000;

/** How many histories are read at once, one for each person. Each has up to 8 million characters, twice. */
const maxReads = 3;
/** How much of histories may wait to be taken by pages, in characters: of all people, and of one. */
const maxUnsent = { max: 32 * 1024 * 1024, maxPerKey: 16 * 1024 * 1024 };

/** Merges the stored history of conversations with their live items. Heavy readers wait their turn. */
export function createConversationViews(
  history: Pick<ConversationHistory, "conversations" | "history" | "openQuestions">,
  feeds: Feeds,
  commands: ReadonlyMap<string, Command>,
  log: Log,
) {
  const reads = createFairSemaphore({ max: maxReads, maxPerKey: 1 });
  const unsent = createFairSemaphore(maxUnsent);

  /** Runs a read in its person's turn. The messages must be used up before anything is awaited. */
  async function inTurn<T>(
    conversationId: string,
    signal: AbortSignal | undefined,
    read: () => Promise<T>,
  ): Promise<T> {
    const release = await reads.acquire(ownerOf(conversationId), 1, signal);
    try {
      return await read();
    } finally {
      release();
    }
  }

  /**
   * Reads the last `maxMessages` of the history. The returned function merges them with the live items of
   * that moment.
   * @throws ParleyError `store-unavailable`
   */
  async function readHistory(conversationId: string, maxMessages: number): Promise<() => SnapshotView> {
    // This is read first, since what is answered meanwhile is stored by then.
    const open = toOpenItems(await history.openQuestions(conversationId), commands);
    const messages = await history.history(conversationId, { maxMessages });
    const stored = messages.map((message) => toOwnItem(conversationId, message));
    // The page shows private calls while they are live, and says that they were there.
    const hasPrivate =
      messages.length === 0 &&
      (await history.conversations(privateCallPrefix(conversationId), { max: 1 })).length > 0;
    const mayHaveMore = messages.length > maxLeftOut && messages.length >= maxMessages - maxLeftOut;
    return () => {
      const feed = feeds.of(conversationId);
      restoreOpen(feed, open, { stored, mayHaveMore });
      return {
        items: mergeItems(stored, feed),
        mayHaveMore,
        ...(hasPrivate ? { hasPrivate } : {}),
      };
    };
  }

  return {
    /** Reads the last messages. @throws ParleyError `store-unavailable`, or the signal's reason */
    readMessages: (conversationId: string, maxMessages: number, signal?: AbortSignal) =>
      inTurn(conversationId, signal, () => history.history(conversationId, { maxMessages })),

    /** Reads and merges the history. @throws ParleyError `store-unavailable`, or the signal's reason */
    readHistory: (conversationId: string, maxMessages: number, signal?: AbortSignal) =>
      inTurn(conversationId, signal, () => readHistory(conversationId, maxMessages)),

    /**
     * Reads and merges the history as JSON in pieces, with the feed's cursors before (`id`) and after it
     * (`from`). The text takes room until `release` is called, since a page may be slow to take it. Where
     * there is none, the person's turn lasts until there is.
     * @throws ParleyError `store-unavailable`, or the signal's reason
     */
    takeSnapshot: (conversationId: string, maxMessages: number, signal: AbortSignal) =>
      inTurn(conversationId, signal, async () => {
        const merge = await readHistory(conversationId, maxMessages);
        const feed = feeds.of(conversationId);
        const id = feed.cursor;
        // Live items are merged synchronously, so that no change is lost.
        const view = merge();
        const from = feed.cursor;
        const pieces = await toJsonPieces(view);
        const chars = pieces.reduce((sum, piece) => sum + piece.length, 0);
        return { id, pieces, from, release: await unsent.acquire(ownerOf(conversationId), chars, signal) };
      }),

    /**
     * Replaces items that have ended by their stored form. While the store cannot be read, the live form
     * stays. Returns the keys of the latest stored messages of people. Contract: does not throw.
     */
    async settle(conversationId: string): Promise<ReadonlySet<string>> {
      try {
        const messages = await history.history(conversationId, { maxMessages: recentMessages });
        const stored = messages.map((message) => toOwnItem(conversationId, message));
        settleItems(feeds.of(conversationId), stored);
        return new Set(stored.flatMap(({ role, id }) => (role === "user" ? [toTurnKey(id)] : [])));
      } catch (error) {
        log.warn({ conversation: conversationId, err: error }, "history read failed after a reply");
        return new Set();
      }
    },
  };
}

/** The JSON of a snapshot with each item as a piece. Others have their turns in between. */
async function toJsonPieces({ items, ...rest }: SnapshotView): Promise<string[]> {
  const pieces = ['{"items":['];
  for (const [index, item] of items.entries()) {
    await nextPiece();
    pieces.push(`${index === 0 ? "" : ","}${JSON.stringify(item)}`);
  }
  pieces.push(`],${JSON.stringify(rest).slice(1)}`);
  return pieces;
}

/** A stored message as the person who has the conversation sees it. */
export function toOwnItem(conversationId: string, message: StoredMessage): ItemView {
  const rating = ratingBy(message, ownerOf(conversationId));
  return { ...toItem(conversationId, message), ...(rating === undefined ? {} : { rating }) };
}

/**
 * Adds to the feed what is open and not stored. A question that is asked anew may be older than what was
 * read.
 */
function restoreOpen(
  feed: Feed,
  open: readonly ItemView[],
  { stored, mayHaveMore }: { readonly stored: readonly ItemView[]; readonly mayHaveMore: boolean },
): void {
  const storedIds = new Set(stored.map(({ id }) => id));
  const oldest = mayHaveMore ? (stored[0]?.createdAt ?? 0) : 0;
  const missing = open.filter(({ id, createdAt }) => !storedIds.has(id) && createdAt >= oldest);
  feed.restore(
    missing.map(({ isWaiting, ...item }) => {
      // Its turn may have begun since the read.
      const hasBegun = feed.get(toItemId(toTurnKey(item.id), "assistant")) !== undefined;
      return isWaiting === true && !hasBegun ? { ...item, isWaiting } : item;
    }),
  );
}

/**
 * Merges the history with the live items that are not in it. A live item wins over its stored form while it
 * runs. It also wins with what only it has: a Retry, and why there is no new answer. Otherwise it is
 * discarded. Private calls are left out once they have ended.
 */
export function mergeItems(stored: readonly ItemView[], feed: Feed): ItemView[] {
  const merged = stored.map((item) => {
    const live = feed.get(item.id);
    if (live === undefined) return item;
    if (isRunning(live)) return live;
    const shown = withLive(item, live);
    if (shown === item) feed.discard(item.id);
    return shown;
  });
  const known = new Set(merged.map((item) => item.id));
  feed.markSent([...known]);
  for (const live of feed.items()) {
    if (known.has(live.id) || isEndedPrivately(live)) continue;
    const isLast = isRunning(live) || live.isWaiting === true;
    const later = isLast ? -1 : merged.findIndex((item) => item.createdAt > live.createdAt);
    if (later === -1) merged.push(live);
    else merged.splice(later, 0, live);
  }
  return merged;
}

function settleItems(feed: Feed, stored: readonly ItemView[]): void {
  const storedIds = new Set(stored.map((item) => item.id));
  // The words of its recordings may have been corrected.
  const spoken = stored.findLast((item) => item.role === "user");
  const oldestLive = Math.min(...feed.items().map((item) => item.createdAt));
  for (const [index, item] of stored.entries()) {
    const live =
      feed.get(item.id) ?? (feed.wasSent(item.id) ? undefined : unmatchedAnswer(feed, item, storedIds));
    if (live !== undefined) {
      // A command stays as it was typed. The history has its text without the command.
      const isCommand = item.role === "user" && live.text.startsWith("/");
      if (!isRunning(live)) feed.settle(live.id, isCommand ? { ...item, text: live.text } : item);
    } else if (item === spoken && item.files.some((file) => file.kind === "audio")) {
      feed.settle(item.id, item);
    } else if (!feed.wasSent(item.id) && item.createdAt >= oldestLive - maxLagMs) {
      const next = stored.slice(index + 1).find((later) => feed.wasSent(later.id));
      feed.insert(item, next?.id ?? feed.items().find((other) => isRunning(other))?.id);
    }
  }
}

/**
 * Returns the live form of an answer that is stored under another message of its batch. It is the last that
 * ended before it was stored and has no stored form of its own.
 */
function unmatchedAnswer(feed: Feed, item: ItemView, storedIds: ReadonlySet<string>): ItemView | undefined {
  if (item.role !== "assistant") return undefined;
  return feed
    .items()
    .findLast(
      (live) =>
        live.role === "assistant" &&
        live.isPrivate !== true &&
        !isRunning(live) &&
        !storedIds.has(live.id) &&
        live.createdAt <= item.createdAt,
    );
}

/** Whether a private answer is still live only for its Retry or its confirmation. */
function isEndedPrivately(item: ItemView): boolean {
  return item.isPrivate === true && item.role === "assistant" && !isRunning(item);
}

/**
 * Returns questions that are not answered yet, as the page shows them. Questions accepted before a restart
 * are nowhere else until their turn begins. All but the first wait for an answer before them.
 */
function toOpenItems(
  questions: readonly OpenQuestion[],
  commands: ReadonlyMap<string, Command>,
): readonly ItemView[] {
  let isFirst = true;
  return questions.map(({ event, hasBegun }) => {
    const isPrivate = event.kind === "call" && event.isPrivate;
    const isWaiting = !isPrivate && !hasBegun && !isFirst;
    isFirst &&= isPrivate;
    return {
      id: toItemId(event.key, "user"),
      role: "user",
      state: "finished",
      createdAt: event.sentAt,
      ...contentOf(event, commands),
      notices: [],
      ...(isPrivate ? { isPrivate } : {}),
      ...(isWaiting ? { isWaiting } : {}),
    };
  });
}

function contentOf(
  event: IncomingEvent,
  commands: ReadonlyMap<string, Command>,
): Pick<ItemView, "text" | "files"> {
  if (event.kind === "message") return { text: event.text, files: event.attachments.map(toAttachedView) };
  const options = Object.entries(event.options);
  // Files are shown beside the text.
  const words = options.filter(([, value]) => typeof value !== "object");
  return {
    text: toCommandLine({ ...event, options: Object.fromEntries(words) }, commands.get(event.name)),
    files: options.flatMap(([, value]) => (typeof value === "object" ? [toAttachedView(value)] : [])),
  };
}

function toAttachedView({ id, name, mediaType = "", linkUrl }: Attachment): FileView {
  return linkUrl === undefined ? toUploadView({ id, name, mediaType }) : { kind: "link", url: linkUrl };
}

/** Returns an uploaded file that is not stored with its message yet. */
export function toUploadView({
  id,
  name,
  mediaType,
}: Pick<UploadMeta, "name" | "mediaType"> & { readonly id: string }): FileView {
  return toFileView({ url: `/api/uploads/${id}`, name, mediaType });
}
