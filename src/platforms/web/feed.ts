import { randomBytes } from "node:crypto";
import type { Change, ItemView } from "./views.ts";

/** A change with the id that a page names when it comes back (`Last-Event-ID`). */
export interface NumberedChange {
  readonly id: string;
  readonly change: Change;
}

/** A file of an answer that the history may not have yet. */
interface HeldFile {
  readonly bytes: Uint8Array;
}

const maxHeldBytes = 64 * 1024 * 1024;
/** Changes kept for a page that comes back; whoever missed more gets a snapshot. */
const maxChanges = 500;
/** Messages held beside the history; the oldest that have ended go first. */
const maxItems = 100;

/**
 * What goes on in one conversation and is not (or not yet) in its history: messages on their way, answers that
 * grow, failures with their Retry. Told to every page that shows the conversation, in order.
 */
export class Feed {
  /** Tells apart the numbers of two runs of the program. */
  readonly #epoch = randomBytes(6).toString("hex");
  readonly #items = new Map<string, ItemView>();
  readonly #changes: NumberedChange[] = [];
  readonly #listeners = new Set<(change: NumberedChange) => void>();
  readonly #storedIds = new Map<string, string>();
  readonly #told = new Set<string>();
  readonly #files = new Map<string, HeldFile>();
  #last = 0;

  get isQuiet(): boolean {
    return this.#listeners.size === 0 && ![...this.#items.values()].some(isRunning);
  }

  get cursor(): string {
    return `${this.#epoch}-${this.#last}`;
  }

  /** The id under which an answer is kept: a burst's one answer is kept under its first message. */
  idOf(liveId: string): string {
    return this.#storedIds.get(liveId) ?? liveId;
  }

  /** Whether pages that show the conversation have this message. */
  isTold(id: string): boolean {
    return this.#told.has(id);
  }

  /** Notes what a snapshot has told. */
  noteTold(ids: readonly string[]): void {
    if (this.#told.size > 10_000) this.#told.clear();
    for (const id of ids) this.#told.add(id);
  }

  get(id: string): ItemView | undefined {
    return this.#items.get(id);
  }

  items(): readonly ItemView[] {
    return [...this.#items.values()];
  }

  /** Adds an item at the end or replaces the one of its id. */
  put(item: ItemView): void {
    this.#items.set(item.id, item);
    this.#tell({ kind: "put", item });
    if (this.#items.size <= maxItems) return;
    const oldest = [...this.#items.values()].find((other) => !isRunning(other) && other.id !== item.id);
    if (oldest !== undefined) this.#items.delete(oldest.id);
  }

  /** Replaces an answer's text; only what is new travels where the old text is its beginning. */
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
    this.#tell({ kind: "text", id, at: item.text.length, text: text.slice(item.text.length) });
  }

  /** Holds an answer's file until it can be read from the history; past 64 MB the oldest go. */
  hold(hash: string, file: HeldFile): void {
    this.#files.delete(hash);
    this.#files.set(hash, file);
    let total = 0;
    for (const { bytes } of this.#files.values()) total += bytes.byteLength;
    for (const [oldest, { bytes }] of this.#files) {
      if (total <= maxHeldBytes || oldest === hash) break;
      this.#files.delete(oldest);
      total -= bytes.byteLength;
    }
  }

  held(hash: string): HeldFile | undefined {
    return this.#files.get(hash);
  }

  /**
   * The history has the message that stands here as `id`: pages show the stored form, and nothing is held here any
   * more, except for a failure, whose Retry the history does not have.
   */
  settle(id: string, stored: ItemView): void {
    const live = this.#items.get(id);
    const item = live?.state === "failed" ? withFailure(stored, live) : stored;
    this.#items.delete(id);
    if (item.state === "failed") this.#items.set(item.id, item);
    for (const file of stored.files) {
      const hash = "url" in file ? /blobs\/(\w+)/.exec(file.url ?? "")?.[1] : undefined;
      if (hash !== undefined) this.#files.delete(hash);
    }
    if (item.id === id) {
      this.#tell({ kind: "put", item });
      return;
    }
    this.#storedIds.set(id, item.id);
    this.#tell({ kind: "put", item, replaces: id });
  }

  /** Shows a stored message that came without the page's doing, before the message `before`. */
  insert(item: ItemView, before: string | undefined): void {
    this.#tell({ kind: "put", item, ...(before === undefined ? {} : { before }) });
  }

  /** Takes back what turned out not to be sent. */
  drop(id: string): void {
    if (this.#items.delete(id)) this.#tell({ kind: "drop", id });
  }

  /** Forgets without a word what a history read has shown to be stored. */
  forget(id: string): void {
    this.#items.delete(id);
  }

  /** The conversation was deleted: nothing of it is held any more, and pages that show it are told. */
  clear(): void {
    for (const held of [this.#items, this.#files, this.#storedIds, this.#told]) held.clear();
    this.#changes.length = 0;
    this.#tell({ kind: "gone" });
  }

  opened(change: Extract<Change, { kind: "opened" }>): void {
    this.#tell(change);
  }

  /** What came after `cursor`; `undefined` when that is not known any more. */
  since(cursor: string): readonly NumberedChange[] | undefined {
    if (cursor === this.cursor) return [];
    const [epoch, number] = cursor.split("-");
    if (epoch !== this.#epoch) return undefined;
    if (number === "0" && this.#changes[0]?.id === `${this.#epoch}-1`) return [...this.#changes];
    const index = this.#changes.findIndex((change) => change.id === cursor);
    return index === -1 ? undefined : this.#changes.slice(index + 1);
  }

  /** The answer ends the listening. */
  listen(listener: (change: NumberedChange) => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #tell(change: Change): void {
    if (change.kind === "put") this.#told.add(change.item.id);
    this.#last += 1;
    const numbered = { id: this.cursor, change };
    this.#changes.push(numbered);
    if (this.#changes.length > maxChanges) this.#changes.shift();
    for (const listener of this.#listeners) listener(numbered);
  }
}

/** Whether an answer is still on its way. */
export function isRunning(item: ItemView): boolean {
  return item.state === "waiting" || item.state === "growing";
}

/** The feeds of all conversations; those nobody looks at are forgotten, the least recently used first. */
export function createFeeds(maxFeeds = 200) {
  const feeds = new Map<string, Feed>();
  return {
    of(conversationId: string): Feed {
      const feed = feeds.get(conversationId) ?? new Feed();
      feeds.delete(conversationId);
      feeds.set(conversationId, feed);
      for (const [id, other] of feeds) {
        if (feeds.size <= maxFeeds) break;
        if (id !== conversationId && other.isQuiet) feeds.delete(id);
      }
      return feed;
    },
  };
}

export type Feeds = ReturnType<typeof createFeeds>;

/**
 * The history with what is not in it yet. Where both have a message, the one that still runs or has failed (and
 * offers a Retry) is shown as it is here, in the history's place.
 */
export function mergeItems(stored: readonly ItemView[], feed: Feed): ItemView[] {
  const merged = stored.map((item) => {
    const live = feed.get(item.id);
    if (live === undefined) return item;
    if (isRunning(live)) return live;
    if (live.state === "failed") return withFailure(item, live);
    feed.forget(item.id);
    return item;
  });
  const known = new Set(merged.map((item) => item.id));
  feed.noteTold([...known]);
  for (const live of feed.items()) {
    if (known.has(live.id)) continue;
    const later = isRunning(live) ? -1 : merged.findIndex((item) => item.createdAt > live.createdAt);
    if (later === -1) merged.push(live);
    else merged.splice(later, 0, live);
  }
  return merged;
}

/** A stored failure with the words and the Retry that only the reply knew. */
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
