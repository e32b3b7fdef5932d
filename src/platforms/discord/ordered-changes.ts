import type { Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Log } from "../../core/telemetry.ts";
import { createKeyedQueue } from "../../support/keyed-queue.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";

const retryMs = 5000;
const maxAttempts = 24;

/** Passes on what people change afterwards: edits and deletions. */
export interface OrderedChanges {
  /**
   * Runs `apply` after the earlier messages and changes of the channel (or server), and again for two minutes while the
   * store is unavailable: Discord sends each once. `left`: what is logged where it fails. Contract: must not throw.
   */
  pass(id: string, apply: () => Promise<unknown>, left: string): void;
}

/** @see {@link OrderedChanges} */
export function createOrderedChanges(options: {
  /** Resolves when the receiver has all earlier messages of the channel. */
  readonly caughtUp: (channelId: string) => Promise<void>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly log: Log;
}): OrderedChanges {
  const { signal, clock, log } = options;
  const queue = createKeyedQueue();

  async function run(id: string, apply: () => Promise<unknown>, left: string): Promise<void> {
    await options.caughtUp(id);
    for (let attempt = 1; ; attempt += 1) {
      try {
        await apply();
        return;
      } catch (error) {
        if (signal.aborted || attempt >= maxAttempts || !isParleyError(error, "store-unavailable")) {
          log.error({ id, err: error }, left);
          return;
        }
        await sleepUnlessAborted(retryMs, signal, clock);
      }
    }
  }

  return {
    pass(id, apply, left) {
      void queue.run(id, () => run(id, apply, left));
    },
  };
}
