import { randomBytes } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Change, ItemView } from "./views.ts";
import { createRecent } from "../../support/recent.ts";

/** A change and the cursor after it, which a page sends when it reconnects (`Last-Event-ID`). */
interface NumberedChange {
  readonly id: string;
  readonly change: Change;
}

/** A page that missed more changes gets a snapshot. */
const maxChanges = 500;

/** Keeps the latest changes of one conversation, numbered, for the pages that show it. */
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

  /** Removes all changes, so that no page gets them any more. The numbers continue. */
  clear(): void {
    this.#changes.length = 0;
  }

  /** Returns the changes after `cursor`, or `undefined` when some of them have been dropped. */
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
/** The most live items. Past it, the oldest that has ended is dropped. */
const maxItems = 100;
const maxStoredIds = 100;
const maxSentIds = 10_000;

/**
 * Holds the live state of one conversation, and the changes of it that pages follow. It is what is not, or
 * not yet, in the history: messages being accepted, answers being streamed, and failures with their Retry.
 */
export class Feed {
  readonly #changes = new ChangeLog();
  readonly #items = new Map<string, ItemView>();
  /** Maps a live item id to the id under which the answer was stored, where they differ. */
  readonly #storedIds = createRecent<string>(maxStoredIds);
  /** The size is limited rather than the count, because `max` would preallocate. */
  readonly #sentIds = createRecent(maxSentIds);
  readonly #files = new LRUCache<string, Uint8Array>({
    maxSize: maxFileBytes,
    sizeCalculation: (bytes) => Math.max(1, bytes.byteLength),
  });

  /** The ids of items that {@link restore} has added. */
  readonly #restored = new Set<string>();

  readonly #onChange: (feed: Feed, change: Change) => void;

  /** Is called after each change. By default nothing is. */
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

  /** Returns the id under which an answer is stored. For a batch it is the id of the first message. */
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

  /** Lists all live items, oldest first. */
  items(): readonly ItemView[] {
    return [...this.#items.values()];
  }

  /**
   * Adds an item at the end or replaces the one with its id. A new answer comes before the questions that
   * wait for it, since they belong to later turns.
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

  /** Caches an answer's file until it is in the history: 64 MB for each conversation, as an LRU cache. */
  cacheFile(hash: string, bytes: Uint8Array): void {
    this.#files.set(hash, bytes);
  }

  /** Returns a cached file. */
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
   * Adds questions that are not answered yet and that this feed does not know, because they were accepted
   * before a restart or by another process. It removes those that it added earlier and that are answered now.
   * The caller sends all to pages.
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

  /** Notes that the turn of the message `id` has begun, so that this one and those before it stop waiting. */
  begin(id: string): void {
    const items = this.items();
    const until = items.findIndex((item) => item.id === id);
    for (const { isWaiting, ...item } of items.slice(0, until + 1)) if (isWaiting === true) this.put(item);
  }

  /** Removes an item that was not accepted, on pages too. */
  drop(id: string): void {
    if (this.#items.delete(id)) this.#publish({ kind: "drop", id });
  }

  /** Removes an item here. Pages that show it keep it. */
  discard(id: string): void {
    this.#items.delete(id);
  }

  /** Removes everything when the conversation was deleted, on pages too. */
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

  /** Removes files and ended items after stored data was erased. Pages keep what they show. */
  forget(): void {
    this.#files.clear();
    for (const item of this.#items.values()) if (!isRunning(item)) this.#items.delete(item.id);
  }

  /** Tells pages that a call opened another conversation. */
  opened(change: Extract<Change, { kind: "opened" }>): void {
    this.#publish(change);
  }

  /** Returns the changes after `cursor`, or `undefined` when some of them have been dropped. */
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
 * Adds to a stored answer what only its reply had: the reason and the Retry of a failure, and notices such as
 * why there is no new answer. Returns `stored` itself where there is nothing to add.
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
 * Holds the feeds of all conversations. Past `maxFeeds` the least recently used idle one is dropped. A feed
 * in use is never dropped, which an LRU cache could not promise. `onChange` is called after each change of
 * one.
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
    /** Returns the feeds that exist, by conversation id. */
    all: (): ReadonlyMap<string, Feed> => feeds,
  };
}

export type Feeds = ReturnType<typeof createFeeds>;

/** `isStored` means that a stored entry has changed. Otherwise an answer has begun or ended. */
type ListListener = (conversationId: string, change: { readonly isStored: boolean }) => void;

/** Tells pages about changes of the lists of conversations, of all people. */
export interface ListChanges {
  /** Lists the conversations in which this process is making an answer. */
  running(): readonly string[];
  /** Notes that a conversation is new or gone, or that its title, name or pin has changed. */
  touch(conversationId: string): void;
  /** Takes in a change of a conversation. */
  follow(conversationId: string, feed: Feed, change: Change): void;
  /** Calls `listener` after every change, until the returned function is called. */
  listen(listener: ListListener): () => void;
}

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
