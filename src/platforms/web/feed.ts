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

const maxFileBytes = 64 * 1024 * 1024;
/** The most live items. Past it, the oldest that has ended is dropped. */
const maxItems = 100;

/**
 * Holds what is live in one conversation: messages until they are in the record, answers that are streamed,
 * and what is never stored. It tells pages what an item is now, by this process or by the record.
 */
export class Feed {
  /** Distinguishes the numbers of these changes from those of another process or an evicted feed. */
  readonly #epoch = randomBytes(6).toString("hex");
  readonly #changes: NumberedChange[] = [];
  readonly #listeners = new Set<(change: NumberedChange) => void>();
  #last = 0;
  readonly #items = new Map<string, ItemView>();
  readonly #files = new LRUCache<string, Uint8Array>({
    maxSize: maxFileBytes,
    sizeCalculation: (bytes) => Math.max(1, bytes.byteLength),
  });
  #isErased = false;

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

  get(id: string): ItemView | undefined {
    return this.#items.get(id);
  }

  /** Lists all live items. */
  items(): readonly ItemView[] {
    return [...this.#items.values()];
  }

  /** Says what a live item is now. Only the new end is sent where its text or its thoughts have grown. */
  put(item: ItemView): void {
    const before = this.#items.get(item.id);
    this.#items.set(item.id, item);
    this.#publish((before && toGrowth(before, item)) ?? { kind: "put", item });
    if (this.#items.size <= maxItems) return;
    const oldest = [...this.#items.values()].find((other) => !isRunning(other) && other.id !== item.id);
    if (oldest !== undefined) this.#items.delete(oldest.id);
  }

  /** Says what the record says of items. What is stored is live no longer. */
  take(items: readonly ItemView[]): void {
    for (const item of items) {
      const live = this.#items.get(item.id);
      if (live !== undefined && item.isStored !== true) this.#items.set(item.id, item);
      else if ((live?.attempt ?? 0) <= (item.attempt ?? 0)) this.#settle(item);
      this.#publish({ kind: "put", item });
    }
  }

  /** Removes a stored item, and its files. */
  #settle({ id, files }: ItemView): void {
    this.#items.delete(id);
    for (const file of files) {
      const hash = "url" in file ? /blobs\/(\w+)/.exec(file.url ?? "")?.[1] : undefined;
      if (hash !== undefined) this.#files.delete(hash);
    }
  }

  /** Caches an answer's file until it is in the history: 64 MB for each conversation, as an LRU cache. */
  cacheFile(hash: string, bytes: Uint8Array): void {
    this.#files.set(hash, bytes);
  }

  /** Returns a cached file. */
  file(hash: string): Uint8Array | undefined {
    return this.#files.get(hash);
  }

  /** Removes an item, on pages too. */
  drop(id: string): void {
    this.#items.delete(id);
    this.#publish({ kind: "drop", id });
  }

  /** Removes an item here. Pages that show it keep it. */
  discard(id: string): void {
    this.#items.delete(id);
  }

  /** Removes everything when the conversation was deleted, on pages too. The numbers of changes continue. */
  clear(): void {
    for (const one of [this.#items, this.#files]) one.clear();
    this.#changes.length = 0;
    this.#publish({ kind: "gone" });
  }

  /** Removes files and ended items because stored data is being erased. */
  forget(): void {
    this.#files.clear();
    for (const item of this.#items.values()) if (!isRunning(item)) this.#items.delete(item.id);
    this.#isErased = true;
  }

  /** Makes pages read everything again when what {@link forget} was called for is erased. */
  afterErasure(): void {
    if (!this.#isErased) return;
    this.#isErased = false;
    this.#publish({ kind: "again" });
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

  #publish(change: Change): void {
    this.#last += 1;
    const numbered = { id: this.cursor, change };
    this.#changes.push(numbered);
    if (this.#changes.length > maxChanges) this.#changes.shift();
    for (const listener of this.#listeners) listener(numbered);
    this.#onChange(change);
  }
}

/** Returns what has come to an item's text or thoughts, where nothing else of it has changed. */
function toGrowth(before: ItemView, item: ItemView): Change | undefined {
  const fields = Object.keys({ ...before, ...item }) as (keyof ItemView)[];
  const [field, another] = fields.filter((name) => before[name] !== item[name]);
  if (another !== undefined || (field !== "text" && field !== "thoughts")) return undefined;
  const { [field]: old = "" } = before;
  const { [field]: grown = "" } = item;
  if (!grown.startsWith(old)) return undefined;
  const change = { kind: "text", id: item.id, at: old.length, text: grown.slice(old.length) } as const;
  return field === "thoughts" ? { ...change, isThought: true } : change;
}

/** Whether an answer is still being made. */
export function isRunning(item: ItemView): boolean {
  return item.state === "waiting" || item.state === "growing";
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
