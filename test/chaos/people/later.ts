/** Runs what people have in mind to do. */
export interface Later {
  /** Runs `work` in so many milliseconds. */
  run(work: () => void, afterMs: number): void;
  /** Resolves when nothing is left to be run. */
  done(): Promise<void>;
}

/** Creates timers that can be waited for. */
export function createLater(): Later {
  const waiting = new Set<Promise<void>>();
  return {
    run(work, afterMs) {
      const one = new Promise<void>((resolve) => {
        setTimeout(() => {
          work();
          resolve();
        }, afterMs);
      }).finally(() => waiting.delete(one));
      waiting.add(one);
    },
    async done() {
      while (waiting.size > 0) await Promise.all(waiting);
    },
  };
}
