import { ParleyError } from "../core/errors.ts";
import type { ConversationQueue } from "../core/storage.ts";
import { createKeyedQueue } from "../support/keyed-queue.ts";

/** The queue of a store that belongs to one process: no work ever loses its conversation. */
export function createLocalQueue(): ConversationQueue {
  const queue = createKeyedQueue();
  const closing = new AbortController();
  const run = <T>(conversationId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    queue.run(conversationId, async () => {
      closing.signal.throwIfAborted();
      return work(new AbortController().signal);
    });
  return {
    isShared: false,
    run,
    async runUnlessTaken(conversationId, work) {
      await run(conversationId, work);
      return true;
    },
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    idle: () => queue.idle(),
  };
}
