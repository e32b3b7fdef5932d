import { AsyncResource } from "node:async_hooks";
import PQueue from "p-queue";

/** Runs work as soon as fewer than the limit's number of others are running, in the order of the calls. */
export type ConcurrencyLimit = <T>(work: () => Promise<T>) => Promise<T>;

/** At most `max` at the same time. @see {@link ConcurrencyLimit} */
export function createConcurrencyLimit(max: number): ConcurrencyLimit {
  const queue = new PQueue({ concurrency: max });
  // The queue starts work where other work has ended: it must not count as part of that one's turn.
  return (work) => queue.add(AsyncResource.bind(work));
}
