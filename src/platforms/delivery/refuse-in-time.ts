import type { Clock } from "../../core/clock.ts";
import type { Receiver } from "../../core/platform.ts";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { systemClock } from "../../support/clock.ts";

/** How long the store is waited for, in milliseconds. */
const maxWaitMs = 1000;

/**
 * Refuses an event before its person is told so, which is best where the store is available. `accepted`: it was taken,
 * and nothing is to be said. Otherwise it is refused, after a second perhaps only in this process's memory so far.
 */
export async function refuseInTime(
  receiver: Pick<Receiver, "refuse">,
  key: string,
  clock: Clock = systemClock,
): Promise<"refused" | "accepted"> {
  const settled = new AbortController();
  const refusal = receiver.refuse(key).finally(() => settled.abort());
  const late = sleepUnlessAborted(maxWaitMs, settled.signal, clock).then(() =>
    settled.signal.aborted ? refusal : ("refused" as const),
  );
  return await Promise.race([refusal, late]);
}
