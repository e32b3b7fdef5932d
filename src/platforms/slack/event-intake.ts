import type { Clock } from "../../core/clock.ts";
import type { App, ReceiverEvent } from "@slack/bolt";
import { sleepUnlessAborted } from "../../support/sleep.ts";
import { systemClock } from "../../support/clock.ts";
import { withLookupTime } from "./lookup-time.ts";

/** Finds the app that handles a payload. `undefined`: it is acknowledged and ignored. */
export type FindApp = (body: Record<string, unknown>) => Promise<Pick<App, "processEvent"> | undefined>;

/** What comes from Slack, over whichever connection. */
export interface EventIntake {
  /** Resolves when it is handled. Rejects where Slack must deliver it again, without an acknowledgement. */
  processEvent(event: ReceiverEvent): Promise<void>;
  /** Resolves when nothing is in flight, at the latest after 2.5 seconds. */
  whenHandled(): Promise<void>;
  /** The same for commands and clicks alone, which Slack delivers once. */
  whenCallsHandled(): Promise<void>;
}

/** Slack's deadline for acknowledgements is three seconds. */
const maxHandlingMs = 2500;

/**
 * Bolt acknowledges an event before its listeners run, so a crash in between would lose it. Here the acknowledgement
 * follows them; if one throws, there is none and Slack delivers the event again.
 * @param closing once aborted, events are refused: Slack delivers them to another connection, or later
 */
export function createEventIntake(
  findApp: FindApp,
  closing: AbortSignal,
  clock: Clock = systemClock,
): EventIntake {
  const inFlight = new Set<Promise<unknown>>();
  const callsInFlight = new Set<Promise<unknown>>();

  async function process(event: ReceiverEvent): Promise<void> {
    const body = event.body as Record<string, unknown>;
    const canBeRedelivered = isEvent(body);
    // Slack delivers commands and clicks once: those that arrive before the connection is closed are still handled.
    if (canBeRedelivered) closing.throwIfAborted();
    const ack = acknowledgeOnce(event.ack);
    // What a button does may take long; Slack takes nothing from its acknowledgement.
    const cancelTimer =
      body["type"] === "block_actions" ? clock.after(maxHandlingMs, () => void ack()) : undefined;
    try {
      const app = await findApp(body);
      await app?.processEvent({ ...event, ack: canBeRedelivered ? () => Promise.resolve() : ack });
      // Also what nobody listens to, such as a button that only opens a link.
      await ack();
    } finally {
      cancelTimer?.();
    }
  }

  return {
    processEvent(event) {
      const work = withLookupTime(clock, () => process(event));
      const settled = Promise.allSettled([work]);
      const sets = isEvent(event.body) ? [inFlight] : [inFlight, callsInFlight];
      for (const set of sets) set.add(settled);
      void settled.then(() => {
        for (const set of sets) set.delete(settled);
      });
      return work;
    },
    whenHandled: () => untilEmpty(inFlight, clock),
    whenCallsHandled: () => untilEmpty(callsInFlight, clock),
  };
}

/** Resolves when nothing is left, at the latest after 2.5 seconds. */
async function untilEmpty(inFlight: ReadonlySet<Promise<unknown>>, clock: Clock): Promise<void> {
  const handled = new AbortController();
  const wait = async (): Promise<void> => {
    while (inFlight.size > 0) await Promise.all(inFlight);
    handled.abort();
  };
  void wait();
  await sleepUnlessAborted(maxHandlingMs, handled.signal, clock);
}

const isEvent = (body: unknown): boolean => (body as Record<string, unknown>)["type"] === "event_callback";

/** The first acknowledgement counts: a second one is an error of Bolt's over HTTP, and ignored by Slack's sockets. */
function acknowledgeOnce(ack: ReceiverEvent["ack"]): ReceiverEvent["ack"] {
  let isDone = false;
  return async (response) => {
    if (isDone) return;
    isDone = true;
    await ack(response);
  };
}
