import { toCommandLine } from "../../core/command-input.ts";
import type { Command } from "../../core/command.ts";
import type { Attachment, IncomingEvent } from "../../core/events.ts";
import type { ConversationHistory, EndedTurn } from "../../core/receiver.ts";
import { ratingBy } from "../../core/raters.ts";
import type { StoredMessage } from "../../core/storage.ts";
import type { Log } from "../../core/telemetry.ts";
import { nextPiece } from "../../support/pieces.ts";
import { createFairSemaphore, createKeyedQueue } from "../../support/queues.ts";
import { toItemId, toTurnKey, ownerOf, privateCallPrefix } from "./address.ts";
import { isRunning, type Feeds } from "./feed.ts";
import type { UploadMeta } from "./uploads.ts";
import { orderStep, toFileView, toItem } from "./items.ts";
import type { FileView, ItemView, SnapshotView } from "./views.ts";

/** How many messages are read to find what is stored of a turn. */
const recentMessages = 30;
/** A read may return this many fewer messages although there are more, without attempts that were retried. */
const maxLeftOut = 10;
/** The most turns of which one read finds out how they have ended. */
const maxEnds = 100;

/** How many histories are read at once, one for each person. Each has up to 8 million characters, twice. */
const maxReads = 3;
/** How much of histories may wait to be taken by pages, in characters: of all people, and of one. */
const maxUnsent = { max: 32 * 1024 * 1024, maxPerKey: 16 * 1024 * 1024 };

/** Reads the record of conversations as pages show it. Heavy readers wait their turn. */
export function createConversationViews(
  history: Pick<ConversationHistory, "conversations" | "ends" | "history" | "openQuestions">,
  feeds: Feeds,
  commands: ReadonlyMap<string, Command>,
  log: Log,
) {
  const reads = createFairSemaphore({ max: maxReads, maxPerKey: 1 });
  const unsent = createFairSemaphore(maxUnsent);
  /** What was read or changed later is told later. */
  const telling = createKeyedQueue();

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
   * Reads the last `maxMessages` of the record and what is not answered yet.
   * @throws ParleyError `store-unavailable`
   */
  async function readRecord(conversationId: string, maxMessages: number): Promise<SnapshotView> {
    // This is read first, since what is answered meanwhile is stored by then.
    const questions = await history.openQuestions(conversationId);
    const messages = await history.history(conversationId, { maxMessages });
    const answers = messages.flatMap(({ role, turnKey }) => (role === "assistant" ? [turnKey] : []));
    const ends = await history.ends(answers.slice(-maxEnds));
    // The page shows private calls while they are live, and says that they were there.
    const hasPrivate =
      messages.length === 0 &&
      (await history.conversations(privateCallPrefix(conversationId), { max: 1 })).length > 0;
    const mayHaveMore = messages.length > maxLeftOut && messages.length >= maxMessages - maxLeftOut;
    const stored = toStoredItems(conversationId, messages, ends);
    const storedIds = new Set(stored.map(({ id }) => id));
    // A question that is asked anew may be older than what was read.
    const oldest = mayHaveMore ? (stored[0]?.createdAt ?? 0) : 0;
    const open = questions
      .map(({ event }) => toOpenItem(event, commands))
      .filter(({ id, createdAt }) => !storedIds.has(id) && createdAt >= oldest);
    return { items: [...stored, ...open], mayHaveMore, ...(hasPrivate ? { hasPrivate } : {}) };
  }

  return {
    /** Reads the last messages. @throws ParleyError `store-unavailable`, or the signal's reason */
    readMessages: (conversationId: string, maxMessages: number, signal?: AbortSignal) =>
      inTurn(conversationId, signal, () => history.history(conversationId, { maxMessages })),

    /** Reads the record. @throws ParleyError `store-unavailable`, or the signal's reason */
    readRecord: (conversationId: string, maxMessages: number, signal?: AbortSignal) =>
      inTurn(conversationId, signal, () => readRecord(conversationId, maxMessages)),

    /**
     * Reads the record, with what is live before it, as JSON in pieces. `cursor` is that of the feed before:
     * the changes after it follow. The text takes room until `release` is called, since a page may be slow to
     * take it. Where there is none, the person's turn lasts until there is.
     * @throws ParleyError `store-unavailable`, or the signal's reason
     */
    takeSnapshot: (conversationId: string, maxMessages: number, signal: AbortSignal) =>
      inTurn(conversationId, signal, async () => {
        const feed = feeds.of(conversationId);
        const { cursor } = feed;
        const live = feed.items().filter((item) => !isEndedPrivately(item));
        const { items, ...rest } = await readRecord(conversationId, maxMessages);
        const pieces = await toJsonPieces({ ...rest, items: [...live, ...items] });
        const chars = pieces.reduce((sum, piece) => sum + piece.length, 0);
        return { cursor, pieces, release: await unsent.acquire(ownerOf(conversationId), chars, signal) };
      }),

    /** Tells pages what a person has changed, after what was read of the conversation before. */
    inOrder: (conversationId: string, tell: () => Promise<void>) => telling.run(conversationId, tell),

    /**
     * Tells pages what the record says of a turn, or of a message, and of what came after it. While the store
     * cannot be read, the live form stays. Returns the keys of the latest stored messages of people.
     * Contract: does not throw.
     */
    refresh: (conversationId: string, key: string): Promise<ReadonlySet<string>> =>
      telling.run(conversationId, async () => {
        try {
          const { items } = await readRecord(conversationId, recentMessages);
          const first = items.findIndex(({ id }) => toTurnKey(id) === key);
          if (first !== -1) feeds.of(conversationId).take(items.slice(first));
          const asked = items.filter(({ isStored, role }) => isStored === true && role === "user");
          return new Set(asked.map(({ id }) => toTurnKey(id)));
        } catch (error) {
          log.warn({ conversation: conversationId, err: error }, "history read failed after a reply");
          return new Set<string>();
        }
      }),
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

/** Stored messages as the person who has the conversation sees them, in the order of the record. */
function toStoredItems(
  conversationId: string,
  messages: readonly StoredMessage[],
  ends: ReadonlyMap<string, EndedTurn>,
): readonly ItemView[] {
  let last = -Infinity;
  return messages.map((message) => {
    const { role, createdAt, turnKey } = message;
    // An answer comes before the next question, although that may have been sent before it had ended.
    const isBelow = role === "assistant" && last !== -Infinity;
    last = isBelow ? last + orderStep : Math.max(last + orderStep, createdAt);
    const rating = ratingBy(message, ownerOf(conversationId));
    const ended = role === "assistant" ? ends.get(turnKey) : undefined;
    return {
      ...toItem(conversationId, message, { order: last, ended }),
      ...(rating === undefined ? {} : { rating }),
    };
  });
}

/** Whether a private answer is still live only for its Retry or its confirmation. */
function isEndedPrivately(item: ItemView): boolean {
  return item.isPrivate === true && item.role === "assistant" && !isRunning(item);
}

/** A question that is not in the record yet, as the page shows it. */
export function toOpenItem(event: IncomingEvent, commands: ReadonlyMap<string, Command>): ItemView {
  return toQuestionItem(event, contentOf(event, commands));
}

/** An accepted question with its words and files. */
export function toQuestionItem(event: IncomingEvent, content: Pick<ItemView, "text" | "files">): ItemView {
  return {
    id: toItemId(event.key, "user"),
    role: "user",
    state: "finished",
    createdAt: event.sentAt,
    order: event.sentAt,
    ...content,
    notices: [],
    ...(event.kind === "call" && event.isPrivate ? { isPrivate: true } : {}),
  };
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
