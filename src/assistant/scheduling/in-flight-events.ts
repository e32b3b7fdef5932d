/** Keys of the events that this process has accepted or resumed and not yet closed. */
export interface InFlightEvents {
  has(key: string): boolean;
  add(key: string): void;
  delete(key: string): void;
  readonly size: number;
  /** Resolves when the key is no longer in flight; at once where it is not. */
  whenDone(key: string): Promise<void>;
}

/** @see {@link InFlightEvents} */
export function createInFlightEvents(): InFlightEvents {
  const keys = new Set<string>();
  const waiting = new Map<string, (() => void)[]>();
  return {
    has: (key) => keys.has(key),
    add(key) {
      keys.add(key);
    },
    delete(key) {
      keys.delete(key);
      const resolves = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const resolve of resolves) resolve();
    },
    get size() {
      return keys.size;
    },
    async whenDone(key) {
      // The key may be added again before this continues, so it is checked again.
      while (keys.has(key)) {
        await new Promise<void>((resolve) => {
          waiting.set(key, [...(waiting.get(key) ?? []), resolve]);
        });
      }
    },
  };
}
