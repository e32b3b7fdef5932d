import { randomBytes } from "node:crypto";
import type { Change } from "./views.ts";

/** A change and the cursor after it, which a page sends when it reconnects (`Last-Event-ID`). */
export interface NumberedChange {
  readonly id: string;
  readonly change: Change;
}

/** A page that missed more changes gets a snapshot. */
const maxChanges = 500;

/** The latest changes of one conversation, numbered, for the pages that show it. */
export class ChangeLog {
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
