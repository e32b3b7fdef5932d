/** The events that this process has accepted or resumed and not yet closed, by key. */
export interface InFlightEvents {
  has(key: string): boolean;
  add(event: { readonly key: string; readonly author: { readonly id: string } }): void;
  delete(key: string): void;
  readonly size: number;
  /** Events in flight of one person. */
  countOf(authorId: string): number;
  /** Resolves when the key is no longer in flight; at once where it is not. */
  whenDone(key: string): Promise<void>;
}

/** @see {@link InFlightEvents} */
export function createInFlightEvents(): InFlightEvents {
  const authors = new Map<string, string>();
  const counts = new Map<string, number>();
  const waiting = new Map<string, (() => void)[]>();
  return {
    has: (key) => authors.has(key),
    add({ key, author }) {
      if (authors.has(key)) return;
      authors.set(key, author.id);
      counts.set(author.id, (counts.get(author.id) ?? 0) + 1);
    },
    delete(key) {
      const author = authors.get(key);
      if (author === undefined) return;
      authors.delete(key);
      const left = (counts.get(author) ?? 0) - 1;
      if (left > 0) counts.set(author, left);
      else counts.delete(author);
      const resolves = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const resolve of resolves) resolve();
    },
    get size() {
      return authors.size;
    },
    countOf: (authorId) => counts.get(authorId) ?? 0,
    async whenDone(key) {
      // The key may be added again before this continues, so it is checked again.
      while (authors.has(key)) {
        await new Promise<void>((resolve) => {
          waiting.set(key, [...(waiting.get(key) ?? []), resolve]);
        });
      }
    },
  };
}
