import { createFairSemaphore } from "./fair-semaphore.ts";

/** Runs work in order within a key. Work of different keys runs in parallel. */
export interface KeyedQueue {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing runs or waits, including work that is added in the meantime. */
  idle(): Promise<void>;
}

/**
 * Keeps one chain of promises for each key and drops it when it is empty. Idle keys therefore cost nothing,
 * and the several queues of a turn cost very little.
 */
export function createKeyedQueue(): KeyedQueue {
  const ends = new Map<string, Promise<void>>();
  return {
    run(key, work) {
      // Work always starts later than the call, even if nothing runs, because callers rely on one order.
      const result = (ends.get(key) ?? Promise.resolve()).then(work);
      const end = result.then(ignore, ignore).then(() => {
        if (ends.get(key) === end) ends.delete(key);
      });
      ends.set(key, end);
      return result;
    },
    async idle() {
      while (ends.size > 0) await Promise.all(ends.values());
    },
  };
}

/** The caller of the failed work gets its error. The next work runs all the same. */
function ignore(): void {}

/** Runs work in the order of the calls, as soon as fewer others run than the limit allows. */
type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

/** Creates a {@link ConcurrencyLimit} for `max` works at the same time. */
export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  const places = createFairSemaphore({ max, maxPerKey: max });
  return async (work) => {
    const release = await places.acquire("", 1);
    try {
      return await work();
    } finally {
      release();
    }
  };
}

/** Shares one run and its result among all callers that call while it runs. */
export function createSharedRun<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () =>
    (running ??= run().finally(() => {
      running = undefined;
    }));
}
