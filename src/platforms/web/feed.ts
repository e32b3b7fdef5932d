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
  /** Distinguishes the numbers of these changes from those of another process or an evicted feed. */
  readonly #epoch = randomBytes(6).toString("hex");
  readonly #changes: NumberedChange[] = [];
  readonly #listeners = new Set<(change: NumberedChange) => void>();
  #last = 0;
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

  readonly #onChange: (change: Change) => void;

  /** Is called after each change. By default nothing is. */
  constructor(onChange: (change: Change) => void = () => undefined) {
    this.#onChange = onChange;
  }

  /** Whether an answer is being made. */
  get isRunning(): boolean {
    return [...this.#items.values()].some(isRunning);
  }

  /** Whether no page listens and no answer is being made. */
  get isIdle(): boolean {
    return this.#listeners.size === 0 && !this.isRunning;
  }

  /** The id of the last change. */
  get cursor(): string {
    return `${this.#epoch}-${this.#last}`;
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
    const { status, drawing: _drawing, ...rest } = item;
    const grown = { ...rest, state: "growing" as const, text };
    if (status !== undefined || item.state !== "growing" || !text.startsWith(item.text)) {
      this.put(grown);
      return;
    }
    this.#items.set(id, grown);
    this.#publish({ kind: "text", id, at: item.text.length, text: text.slice(item.text.length) });
  }

  /** Replaces an answer's thoughts, and sends them as {@link setText} sends its text. */
  setThoughts(id: string, thoughts: string): void {
    const item = this.#items.get(id);
    const { thoughts: before = "" } = item ?? {};
    if (item === undefined || before === thoughts) return;
    const grown = { ...item, thoughts };
    if (!thoughts.startsWith(before)) {
      this.put(grown);
      return;
    }
    this.#items.set(id, grown);
    this.#publish({
      kind: "text",
      id,
      at: before.length,
      text: thoughts.slice(before.length),
      isThought: true,
    });
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

  /** Removes everything when the conversation was deleted, on pages too. The numbers of changes continue. */
  clear(): void {
    for (const one of [this.#items, this.#files, this.#storedIds, this.#sentIds, this.#restored]) one.clear();
    this.#changes.length = 0;
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
    const [epoch, number] = cursor.split("-");
    const missed = this.#last - Number(number);
    if (epoch !== this.#epoch || !(missed >= 0 && missed <= this.#changes.length)) return undefined;
    return this.#changes.slice(this.#changes.length - missed);
  }

  /** Calls `listener` with every new change, until the returned function is called. */
  listen(listener: (change: NumberedChange) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #itemsFrom(id: string): readonly ItemView[] {
    const items = this.items();
    return items.slice(items.findIndex((item) => item.id === id));
  }

  #publish(change: Change): void {
    if (change.kind === "put") this.#sentIds.set(change.item.id, true);
    this.#last += 1;
    const numbered = { id: this.cursor, change };
    this.#changes.push(numbered);
    if (this.#changes.length > maxChanges) this.#changes.shift();
    for (const listener of this.#listeners) listener(numbered);
    this.#onChange(change);
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

/** `isStored` means that a stored entry has changed. Otherwise an answer has begun or ended. */
type ListListener = (conversationId: string, change: { readonly isStored: boolean }) => void;

/**
 * Holds the feeds of all conversations, and tells pages about changes of the lists of conversations, of all
 * people. Past `maxFeeds` the least recently used idle feed is dropped. A feed in use is never dropped, which
 * an LRU cache could not promise.
 */
export function createFeeds(maxFeeds = 200) {
  const feeds = new Map<string, Feed>();
  const running = new Set<string>();
  const listeners = new Set<ListListener>();
  const tell = (conversationId: string, isStored: boolean): void => {
    for (const listener of listeners) listener(conversationId, { isStored });
  };

  function createFeed(conversationId: string): Feed {
    const feed = new Feed(({ kind }) => {
      // The text of an answer that grows says nothing new, and comes often.
      if (kind === "text" || feed.isRunning === running.has(conversationId)) return;
      if (feed.isRunning) running.add(conversationId);
      else running.delete(conversationId);
      tell(conversationId, false);
    });
    return feed;
  }

  return {
    of(conversationId: string): Feed {
      const feed = feeds.get(conversationId) ?? createFeed(conversationId);
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
    /** Lists the conversations in which this process is making an answer. */
    running: (): readonly string[] => [...running],
    /** Notes that a conversation is new or gone, or that its title, name or pin has changed. */
    touch: (conversationId: string): void => tell(conversationId, true),
    /** Calls `listener` after every change of a list, until the returned function is called. */
    listen(listener: ListListener): () => void {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

export type Feeds = ReturnType<typeof createFeeds>;
