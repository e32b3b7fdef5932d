import { LRUCache } from "lru-cache";
import type { Clock } from "../../core/clock.ts";
import type { Log } from "../../core/telemetry.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { isLimited, type DeliveryCalls } from "./delivery-calls.ts";
import type { MessageRef } from "./web-api.ts";

/** How long the end of a reply waits for the removal of its previews. */
const withinMs = 5000;
const maxRemoved = 2000;
const maxTries = 5;

/** Messages of this bot in whose place others were posted. */
export interface ReplacedMessages {
  /**
   * Removes messages that no saved address contains any more. Resolves when that is done or has waited five seconds; what
   * is left then is removed later. Never rejects.
   */
  remove(refs: readonly MessageRef[]): Promise<void>;
  /** Whether the bot has removed that message itself: no person has deleted an answer. */
  isOwn(ts: string): boolean;
  /** Removes nothing more. */
  close(): void;
}

/** @see {@link ReplacedMessages} */
export function createReplacedMessages(
  calls: Pick<DeliveryCalls, "remove">,
  log: Log,
  clock: Clock,
): ReplacedMessages {
  const own = new LRUCache<string, true>({ max: maxRemoved });
  const closing = new AbortController();

  async function tryToRemove(ref: MessageRef): Promise<number | undefined> {
    try {
      await calls.remove(ref, { urgency: "final", withinMs, signal: closing.signal });
      return undefined;
    } catch (error) {
      if (isLimited(error)) return error.retryAfterMs;
      log.debug({ err: error }, "replaced message not removed");
      return undefined;
    }
  }

  async function removeLater(ref: MessageRef, firstMs: number): Promise<void> {
    let waitMs: number | undefined = firstMs;
    for (let tries = 1; waitMs !== undefined && tries < maxTries; tries += 1) {
      await sleepUnlessAborted(waitMs, closing.signal, clock);
      if (closing.signal.aborted) return;
      waitMs = await tryToRemove(ref);
    }
    if (waitMs !== undefined) log.warn({ channel: ref.channel }, "replaced message left");
  }

  return {
    async remove(refs) {
      for (const { ts } of refs) own.set(ts, true);
      await Promise.all(
        refs.map(async (ref) => {
          const waitMs = await tryToRemove(ref);
          if (waitMs !== undefined) void removeLater(ref, waitMs);
        }),
      );
    },
    isOwn: (ts) => own.has(ts),
    close: () => closing.abort(),
  };
}
