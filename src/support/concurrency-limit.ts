import PQueue from "p-queue";

/** Runs work as soon as fewer than the limit's number of others are running, in the order of the calls. */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

/** At most `max` at the same time. @see {@link ConcurrencyLimit} */
export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  const queue = new PQueue({ concurrency: max });
  return (work) => queue.add(work);
}
