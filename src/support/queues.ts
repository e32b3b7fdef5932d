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

interface FairSemaphoreOptions {
  /** How many units may be in use at once, over all keys. */
  readonly max: number;
  /** How many units may be in use at once for one key. */
  readonly maxPerKey: number;
}

/** Gives units back. Another call has no effect. */
export type Release = () => void;

interface Waiter {
  readonly units: number;
  readonly start: () => void;
}

/**
 * Limits what is in use at once. Keys take turns, so that one busy key does not delay the others: who gives
 * units back comes after all who wait for theirs.
 */
export function createFairSemaphore({ max, maxPerKey }: FairSemaphoreOptions) {
  const usedByKey = new Map<string, number>();
  /** The order is that in which keys are served next. */
  const queues = new Map<string, Waiter[]>();
  let used = 0;
  let waiting = 0;

  /** Lets all others be served before a key. */
  function moveBack(key: string): void {
    const queue = queues.get(key);
    queues.delete(key);
    if (queue !== undefined && queue.length > 0) queues.set(key, queue);
  }

  function take(key: string, units: number): Release {
    used += units;
    usedByKey.set(key, (usedByKey.get(key) ?? 0) + units);
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      used -= units;
      const left = (usedByKey.get(key) ?? 0) - units;
      if (left > 0) usedByKey.set(key, left);
      else usedByKey.delete(key);
      moveBack(key);
      serve();
    };
  }

  /** Starts waiters while units are free, one of each key in turn. */
  function serve(): void {
    for (let isServing = true; isServing;) {
      isServing = false;
      for (const [key, queue] of queues) {
        const [first] = queue;
        if (first === undefined) continue;
        if ((usedByKey.get(key) ?? 0) + first.units > maxPerKey) continue;
        // A large request keeps its position, because smaller ones could otherwise delay it for ever.
        if (used + first.units > max) return;
        queue.shift();
        moveBack(key);
        waiting -= 1;
        first.start();
        isServing = true;
        break;
      }
    }
  }

  return {
    /** The number of units in use. */
    used: () => used,
    /** The number of requests that wait. */
    waiting: () => waiting,
    /** Whether a request of another key waits. */
    hasOthersWaiting: (key: string): boolean => [...queues.keys()].some((other) => other !== key),
    /**
     * Resolves when `asked` units are available for the key. More units than a limit count as the limit.
     * Requests of one key are served in order.
     * @throws the reason of `signal` if it aborts first
     */
    acquire(key: string, asked: number, signal?: AbortSignal): Promise<Release> {
      const units = Math.min(asked, max, maxPerKey);
      return new Promise<Release>((resolve, reject) => {
        if (signal?.aborted === true) {
          reject(signal.reason as Error);
          return;
        }
        const queue = queues.get(key) ?? [];
        const waiter: Waiter = {
          units,
          start() {
            signal?.removeEventListener("abort", onAbort);
            resolve(take(key, units));
          },
        };
        const onAbort = (): void => {
          queue.splice(queue.indexOf(waiter), 1);
          waiting -= 1;
          if (queue.length === 0 && queues.get(key) === queue) queues.delete(key);
          reject(signal?.reason as Error);
          serve();
        };
        queue.push(waiter);
        queues.set(key, queue);
        waiting += 1;
        serve();
        // Most requests start at once and need no listener.
        if (queue.includes(waiter)) signal?.addEventListener("abort", onAbort, { once: true });
      });
    },
  };
}
