import type { Clock } from "../../core/clock.ts";

/** How the writes of this moment are committed. */
interface WriteQueueOptions<Write> {
  /** Commits all of them in their order, or none. Returns their results. */
  readonly commit: (writes: readonly Write[]) => readonly unknown[] | Promise<readonly unknown[]>;
  /** Whether an error concerns one write only. The others of its transaction are then tried without it. */
  readonly isOfOneWrite: (error: unknown) => boolean;
  /** Whether one more write fits into a transaction with these. Default: always. */
  readonly fits?: (batch: readonly Write[], next: Write) => boolean;
  /** A write that waited longer is not sent, in milliseconds. Default: all are sent. */
  readonly maxWaitMs?: number;
  readonly clock: Clock;
}

interface Waiting<Write> {
  readonly write: Write;
  readonly since: number;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Creates a function that commits a write in the next transaction, in the order of the calls. Writes in
 * answer to the same input of the event loop, and those that arrive while a transaction runs, go into one
 * together and share its wait for the disk. A failing write does not affect others. It rejects with the
 * errors of the database.
 */
export function createWriteQueue<Write>(
  options: WriteQueueOptions<Write>,
): (write: Write) => Promise<unknown> {
  const { commit, isOfOneWrite, fits = () => true, maxWaitMs = Infinity, clock } = options;
  const waiting: Waiting<Write>[] = [];
  let isDraining = false;

  const takeBatch = (): Waiting<Write>[] => {
    const batch: Waiting<Write>[] = [];
    const writes: Write[] = [];
    for (let [next] = waiting; next !== undefined; [next] = waiting) {
      if (writes.length > 0 && !fits(writes, next.write)) break;
      waiting.shift();
      // Nobody waits for it any more.
      if (clock.monotonic() - next.since > maxWaitMs)
        next.reject(new Error(`not sent within ${maxWaitMs} ms`));
      else {
        batch.push(next);
        writes.push(next.write);
      }
    }
    return batch;
  };

  const commitTogether = async (batch: readonly Waiting<Write>[]): Promise<void> => {
    try {
      const results = await commit(batch.map(({ write }) => write));
      for (const [position, { resolve }] of batch.entries()) resolve(results[position]);
    } catch (error) {
      if (batch.length > 1 && isOfOneWrite(error)) for (const one of batch) await commitTogether([one]);
      else for (const { reject } of batch) reject(error);
    }
  };

  const drain = async (): Promise<void> => {
    isDraining = true;
    while (waiting.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const batch = takeBatch();
      if (batch.length > 0) await commitTogether(batch);
    }
    isDraining = false;
  };

  return (write) =>
    new Promise((resolve, reject) => {
      waiting.push({ write, since: clock.monotonic(), resolve, reject });
      if (!isDraining) void drain();
    });
}
