import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Change, ItemView } from "./views.ts";

/** A change and the cursor after it, which a page sends when it reconnects (`Last-Event-ID`). */
interface NumberedChange {
  readonly id: string;
  readonly change: Change;
}

/** A page that missed more changes gets a snapshot. */
const maxChanges = 500;

/** The latest changes of one conversation, numbered, for the pages that show it. */
class ChangeLog {
  /** Distinguishes the numbers of this log from those of another process or an evicted log. */
  readonly #epoch = randomBytes(6).toString("hex");
  readonly #changes: NumberedChange[] = [];
  readonly #listeners = new Set<(change: NumberedChange) => void>();
  #last = 0;

  /** The id of the last change. */
  get cursor(): string {
    return `${this.#epoch}-${this.#last}`;
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0;
  }

  /** Numbers a change and passes it to all listeners synchronously. */
  append(change: Change): void {
    this.#last += 1;
    const numbered = { id: this.cursor, change };
    this.#changes.push(numbered);
    if (this.#changes.length > maxChanges) this.#changes.shift();
    for (const listener of this.#listeners) listener(numbered);
  }

  /** Removes all changes, so that no page gets them any more. Numbers continue. */
  clear(): void {
    this.#changes.length = 0;
  }

  /** The changes after `cursor`, or `undefined` when some of them are no longer known. */
  since(cursor: string): readonly NumberedChange[] | undefined {
    if (cursor === this.cursor) return [];
    const [epoch, number] = cursor.split("-");
    if (epoch !== this.#epoch) return undefined;
    if (number === "0" && this.#changes[0]?.id === `${this.#epoch}-1`) return [...this.#changes];
    const index = this.#changes.findIndex((change) => change.id === cursor);
    return index === -1 ? undefined : this.#changes.slice(index + 1);
  }

  /** Calls `listener` with every new change, until the returned function is called. */
  listen(listener: (change: NumberedChange) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }
}

const maxFileBytes = 64 * 1024 * 1024;
/** Live items; past it the oldest that has ended is dropped. */
const maxItems = 100;
const maxStoredIds = 100;
const maxSentIds = 10_000;

/**
 * Live state of one conversation: what is not, or not yet, in its history (messages being accepted, answers being
 * streamed, failures with their Retry), and the changes of it that pages follow.
 */
export class Feed {
  readonly #changes = new ChangeLog();
  readonly #items = new Map<string, ItemView>();
  /** Live item id → id under which the answer was stored, where they differ. */
  readonly #storedIds = new LRUCache<string, string>({ max: maxStoredIds });
  /** Sized rather than counted: `max` would preallocate. */
  readonly #sentIds = new LRUCache<string, true>({ maxSize: maxSentIds, sizeCalculation: () => 1 });
  readonly #files = new LRUCache<string, Uint8Array>({
    maxSize: maxFileBytes,
    sizeCalculation: (bytes) => Math.max(1, bytes.byteLength),
  });

  /** Ids of items that {@link restore} has added. */
  readonly #restored = new Set<string>();

  readonly #onChange: (feed: Feed, change: Change) => void;

  /** `onChange` is called after each change. Default: nothing is. */
  constructor(onChange: (feed: Feed, change: Change) => void = () => undefined) {
    this.#onChange = onChange;
  }

  /** Whether no page listens and no answer is being made. */
  get isIdle(): boolean {
    return !this.#changes.hasListeners && ![...this.#items.values()].some(isRunning);
  }

  /** The id of the last change. */
  get cursor(): string {
    return this.#changes.cursor;
  }

  /** The id under which an answer is stored: the one answer to a batch of messages has the id of the first. */
  storedIdOf(liveId: string): string {
    return this.#storedIds.get(liveId) ?? liveId;
  }

  /** Whether pages have been sent this item, by a change or in a snapshot. */
  wasSent(id: string): boolean {
    return this.#sentIds.has(id);
  }

  /** Marks the items of a snapshot as sent. */
  markSent(ids: readonly string[]): void {
    for (const id of ids) this.#sentIds.set(id, true);
  }

  get(id: string): ItemView | undefined {
    return this.#items.get(id);
  }

  /** All live items, oldest first. */
  items(): readonly ItemView[] {
    return [...this.#items.values()];
  }

  /**
   * Adds an item at the end or replaces the one with its id. A new answer comes before the questions that wait for it: they
   * are of later turns.
   */
  put(item: ItemView): void {
    const isNewAnswer = item.role === "assistant" && item.isPrivate !== true && !this.#items.has(item.id);
    const before = isNewAnswer ? this.items().find(({ isWaiting }) => isWaiting === true)?.id : undefined;
    const later = before === undefined ? [] : this.#itemsFrom(before);
    for (const { id } of later) this.#items.delete(id);
    for (const one of [item, ...later]) this.#items.set(one.id, one);
    this.#publish({ kind: "put", item, ...(before === undefined ? {} : { before }) });
    if (this.#items.size <= maxItems) return;
    const oldest = [...this.#items.values()].find((other) => !isRunning(other) && other.id !== item.id);
    if (oldest !== undefined) this.#items.delete(oldest.id);
  }

  /** Replaces an answer's text. Only the new end is sent where the old text is a prefix of it. */
  setText(id: string, text: string): void {
    const item = this.#items.get(id);
    if (item === undefined || item.text === text) return;
    const { status, ...rest } = item;
    const grown = { ...rest, state: "growing" as const, text };
    if (status !== undefined || item.state !== "growing" || !text.startsWith(item.text)) {
      this.put(grown);
      return;
    }
    this.#items.set(id, grown);
    this.#publish({ kind: "text", id, at: item.text.length, text: text.slice(item.text.length) });
  }

  /** Caches an answer's file until it is in the history: 64 MB per conversation, least recently used first out. */
  cacheFile(hash: string, bytes: Uint8Array): void {
    this.#files.set(hash, bytes);
  }

  /** A cached file. */
  file(hash: string): Uint8Array | undefined {
    return this.#files.get(hash);
  }

  /**
   * Replaces the live item `id` by its stored form, on pages too. What only its reply had stays live, as
   * {@link withLive} says.
   */
  settle(id: string, stored: ItemView): void {
    const live = this.#items.get(id);
    const item = live === undefined ? stored : withLive(stored, live);
    this.#items.delete(id);
    if (item !== stored) this.#items.set(item.id, item);
    for (const file of stored.files) {
      const hash = "url" in file ? /blobs\/(\w+)/.exec(file.url ?? "")?.[1] : undefined;
      if (hash !== undefined) this.#files.delete(hash);
    }
    if (item.id === id) {
      this.#publish({ kind: "put", item });
      return;
    }
    this.#storedIds.set(id, item.id);
    this.#publish({ kind: "put", item, replaces: id });
  }

  /** Sends a stored item that pages do not have, to be shown before the item `before` or at the end. */
  insert(item: ItemView, before: string | undefined): void {
    this.#publish({ kind: "put", item, ...(before === undefined ? {} : { before }) });
  }

  /**
   * Adds questions that are not answered yet and that this feed does not know: they were accepted before a restart, or by
   * another process. Those that it added earlier and that are not among them any more are removed. The caller sends all to
   * pages.
   */
  restore(open: readonly ItemView[]): void {
    const ids = new Set(open.map(({ id }) => id));
    for (const id of this.#restored) {
      if (ids.has(id)) continue;
      this.#restored.delete(id);
      this.drop(id);
    }
    for (const item of open) {
      if (this.#items.has(item.id)) continue;
      this.#items.set(item.id, item);
      this.#restored.add(item.id);
    }
  }

  /** The turn of the message `id` has begun: neither it nor those before it wait any more. */
  begin(id: string): void {
    const items = this.items();
    const until = items.findIndex((item) => item.id === id);
    for (const { isWaiting, ...item } of items.slice(0, until + 1)) if (isWaiting === true) this.put(item);
  }

  /** Removes an item, on pages too: it was not accepted. */
  drop(id: string): void {
    if (this.#items.delete(id)) this.#publish({ kind: "drop", id });
  }

  /** Removes an item here. Pages that show it keep it. */
  discard(id: string): void {
    this.#items.delete(id);
  }

  /** The conversation was deleted: removes everything, on pages too. */
  clear(): void {
    for (const one of [
      this.#items,
      this.#files,
      this.#storedIds,
      this.#sentIds,
      this.#restored,
      this.#changes,
    ])
      one.clear();
    this.#publish({ kind: "gone" });
  }

  /** What is stored was erased: removes the files, and items that have ended. Pages keep what they show. */
  forget(): void {
    this.#files.clear();
    for (const item of this.#items.values()) if (!isRunning(item)) this.#items.delete(item.id);
  }

  /** Tells pages that a call opened another conversation. */
  opened(change: Extract<Change, { kind: "opened" }>): void {
    this.#publish(change);
  }

  /** The changes after `cursor`, or `undefined` when some of them are no longer known. */
  since(cursor: string): readonly NumberedChange[] | undefined {
    return this.#changes.since(cursor);
  }

  /** Calls `listener` with every new change, until the returned function is called. */
  listen(listener: (change: NumberedChange) => void): () => void {
    return this.#changes.listen(listener);
  }

  #itemsFrom(id: string): readonly ItemView[] {
    const items = this.items();
    return items.slice(items.findIndex((item) => item.id === id));
  }

  #publish(change: Change): void {
    if (change.kind === "put") this.#sentIds.set(change.item.id, true);
    this.#changes.append(change);
    this.#onChange(this, change);
  }
}

/** Whether an answer is still being made. */
export function isRunning(item: ItemView): boolean {
  return item.state === "waiting" || item.state === "growing";
}

/** Whether later messages wait for it. Private calls run beside the conversation. */
export function holdsUp(item: ItemView): boolean {
  return item.isPrivate !== true && (isRunning(item) || item.isWaiting === true);
}

/**
 * The stored form of an answer with what only its reply had: the reason and the Retry of a failure; notices, such as why
 * there is no new answer. The same object as `stored`: there is nothing of that.
 */
export function withLive(stored: ItemView, live: ItemView): ItemView {
  if (live.state === "failed") return withFailure(stored, live);
  const isSame = live.role === "assistant" && live.text.trim() === stored.text.trim();
  const hasMore = live.notices.some((notice) => !stored.notices.includes(notice));
  return isSame && hasMore ? { ...stored, notices: live.notices } : stored;
}

function withFailure(stored: ItemView, live: ItemView): ItemView {
  const { failure, retryKey, notices } = live;
  const { retryKey: _retryKey, failure: _failure, ...rest } = stored;
  return {
    ...rest,
    state: "failed",
    notices,
    ...(failure === undefined ? {} : { failure }),
    ...(retryKey === undefined ? {} : { retryKey }),
  };
}

/**
 * The feeds of all conversations. Past `maxFeeds` the least recently used idle one is dropped; a feed that is in use
 * never is, which an LRU cache could not promise. `onChange` is called after each change of one.
 */
export function createFeeds(
  maxFeeds = 200,
  onChange: (conversationId: string, feed: Feed, change: Change) => void = () => undefined,
) {
  const feeds = new Map<string, Feed>();
  return {
    of(conversationId: string): Feed {
      const feed =
        feeds.get(conversationId) ?? new Feed((...changed) => onChange(conversationId, ...changed));
      feeds.delete(conversationId);
      feeds.set(conversationId, feed);
      for (const [id, other] of feeds) {
        if (feeds.size <= maxFeeds) break;
        if (id !== conversationId && other.isIdle) feeds.delete(id);
      }
      return feed;
    },
    /** Those that exist, with their conversation ids. */
    all: (): ReadonlyMap<string, Feed> => feeds,
  };
}

/** @see {@link createFeeds} */
export type Feeds = ReturnType<typeof createFeeds>;

/** `isStored`: what is stored of the conversation's entry has changed; otherwise an answer has begun or ended. */
type ListListener = (conversationId: string, change: { readonly isStored: boolean }) => void;

/** Changes of the lists of conversations, of all people, for the pages that show them. */
export interface ListChanges {
  /** Conversations whose answer is being made, by this process. */
  running(): readonly string[];
  /** The title, name or pin of a conversation has changed, or the conversation itself is new or gone. */
  touch(conversationId: string): void;
  /** Takes in a change of a conversation. */
  follow(conversationId: string, feed: Feed, change: Change): void;
  /** Calls `listener` after every change, until the returned function is called. */
  listen(listener: ListListener): () => void;
}

/** @see {@link ListChanges} */
export function createListChanges(): ListChanges {
  const running = new Set<string>();
  const listeners = new Set<ListListener>();
  const tell = (conversationId: string, isStored: boolean): void => {
    for (const listener of listeners) listener(conversationId, { isStored });
  };

  return {
    running: () => [...running],
    touch: (conversationId) => tell(conversationId, true),
    follow(conversationId, feed, { kind }) {
      // The text of an answer that grows says nothing new, and comes often.
      if (kind === "text") return;
      const isNow = feed.items().some(isRunning);
      if (isNow === running.has(conversationId)) return;
      if (isNow) running.add(conversationId);
      else running.delete(conversationId);
      tell(conversationId, false);
    },
    listen(listener) {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}
