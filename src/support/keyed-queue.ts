import PQueue from "p-queue";

/** Work that must not overlap, by key: in order within a key, side by side between keys. */
export interface KeyedQueue {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing runs or waits, also what was added meanwhile. */
  idle(): Promise<void>;
}

/** One queue a key, dropped as soon as it is empty: idle keys cost nothing. */
export function createKeyedQueue(): KeyedQueue {
  const queues = new Map<string, PQueue>();
  return {
    async run(key, work) {
      let queue = queues.get(key);
      if (queue === undefined) {
        const created = new PQueue({ concurrency: 1 });
        created.addEventListener("idle", () => {
          if (created.size === 0 && created.pending === 0 && queues.get(key) === created) queues.delete(key);
        });
        queues.set(key, created);
        queue = created;
      }
      return queue.add(work);
    },
    async idle() {
      while (queues.size > 0) await Promise.all([...queues.values()].map((queue) => queue.onIdle()));
    },
  };
}
