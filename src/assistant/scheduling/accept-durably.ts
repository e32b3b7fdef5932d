import { isParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { AcceptOptions, Inbox } from "../../core/inbox.ts";
import { backoffMs, retry } from "../../support/retry.ts";

/** Platforms want an acknowledgement within 3 s; attempts start within this time, in milliseconds. */
const patienceMs = 1500;
const backoff = { baseMs: 25, maxMs: 400 };

/**
 * Accepts an event, and tries again for a moment when the store is unavailable: a person is not told of an outage that
 * is over before they have read it. `options`: as of `Inbox.accept`.
 * @throws ParleyError `store-unavailable`
 */
export async function acceptDurably(
  inbox: Pick<Inbox, "accept" | "isOpen">,
  event: IncomingEvent,
  options?: AcceptOptions,
): Promise<"accepted" | "duplicate"> {
  const deadline = performance.now() + patienceMs;
  let hasFailed = false;
  const result = await retry(() => inbox.accept(event, options), {
    delayMs(error, attempt) {
      hasFailed = true;
      const waitMs = backoffMs(attempt, backoff);
      const isInTime = performance.now() + waitMs < deadline;
      return isParleyError(error, "store-unavailable") && isInTime ? waitMs : undefined;
    },
  });
  if (result === "accepted" || !hasFailed) return result;
  // The attempt that failed may have been written: then the event is this process's, and still open.
  return (await inbox.isOpen(event.key)) ? "accepted" : "duplicate";
}
