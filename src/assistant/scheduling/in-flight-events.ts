/** Keys of the events that this process is at, from acceptance to the closed entry. */
export interface InHand {
  has(key: string): boolean;
  add(key: string): void;
  delete(key: string): void;
  readonly size: number;
  /** Resolves when the key is let go of; at once where it is not held. */
  untilFree(key: string): Promise<void>;
}

/** @see {@link InHand} */
export function createInHand(): InHand {
  const held = new Set<string>();
  const waiting = new Map<string, (() => void)[]>();
  return {
    has: (key) => held.has(key),
    add(key) {
      held.add(key);
    },
    delete(key) {
      held.delete(key);
      const resolves = waiting.get(key) ?? [];
      waiting.delete(key);
      for (const resolve of resolves) resolve();
    },
    get size() {
      return held.size;
    },
    async untilFree(key) {
      // A key may be taken up again in the same breath; whoever waits looks once more.
      while (held.has(key)) {
        await new Promise<void>((resolve) => {
          waiting.set(key, [...(waiting.get(key) ?? []), resolve]);
        });
      }
    },
  };
}
