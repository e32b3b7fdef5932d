import { AsyncResource } from "node:async_hooks";
import PQueue from "p-queue";

/** Work that must not overlap, by key: in order within a key, side by side between keys. */
export interface KeyedQueue {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Resolves when nothing runs or waits, also what was added meanwhile. */
  idle(): Promise<void>;
}

/**
 * One chain of promises a key, dropped as soon as it is empty: idle keys cost nothing, and a turn, which runs in several
 * queues, costs next to nothing.
 */
export function createKeyedQueue(): KeyedQueue {
  const ends = new Map<string, Promise<void>>();
  return {
    run(key, work) {
      // Always later than the call, also where nothing runs: callers rely on one order.
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

/** Whoever waits for the work gets its error; the next work runs all the same. */
function ignore(): void {}

/** Runs work as soon as fewer than the limit's number of others are running, in the order of the calls. */
type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

/** At most `max` at the same time. @see {@link ConcurrencyLimit} */
export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  const queue = new PQueue({ concurrency: max });
  // The queue starts work where other work has ended: it must not count as part of that one's turn.
  return (work) => queue.add(AsyncResource.bind(work));
}

/** Callers during a run share its result: many of them cost one run. */
export function createSharedRun<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () =>
    (running ??= run().finally(() => {
      running = undefined;
    }));
}
