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

/** Limits what is in use at once. Keys take turns, so that one busy key does not delay the others. */
export function createFairSemaphore({ max, maxPerKey }: FairSemaphoreOptions) {
  const usedByKey = new Map<string, number>();
  /** The order is that in which keys are served next. */
  const queues = new Map<string, Waiter[]>();
  let used = 0;
  let waiting = 0;

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
        queues.delete(key);
        if (queue.length > 0) queues.set(key, queue);
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
