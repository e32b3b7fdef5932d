import { ParleyError } from "../../core/errors.ts";
import type { Inbox, Redo, RedoOptions } from "../../core/inbox.ts";
import type { Clock } from "../../core/clock.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

/** How long a turn may take to close after its reply has ended, in milliseconds: the buttons are visible before. */
const closingMs = 1000;
const tryAgainMs = 100;

/**
 * Runs an answered turn again into the same reply; the new answer takes the place of the stored one. It survives a restart
 * from the moment this resolves. `open`: it runs or waits already, or has run since. `gone`:
 * it is not the last turn of its conversation and was answered more than a day ago, or it was erased.
 * @throws ParleyError `store-unavailable`, `stopping`
 */
export type RedoTurn = (
  key: string,
  redo: Redo,
  options?: RedoOptions,
) => Promise<"accepted" | "open" | "gone">;

/** @see {@link RedoTurn} */
export function createRedoTurn({
  inbox,
  scheduler,
  clock,
}: {
  readonly inbox: Pick<Inbox, "redo">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
  readonly clock: Clock;
}): RedoTurn {
  return async (key, wanted, options) => {
    const deadline = clock.monotonic() + closingMs;
    for (;;) {
      if (scheduler.isStopping()) throw new ParleyError("stopping", "the process is stopping");
      const reopened = scheduler.inFlight.has(key) ? "open" : await inbox.redo(key, wanted, options);
      if (reopened === "gone") return reopened;
      if (reopened !== "open") {
        const { event, others, turn: progress, redo } = reopened;
        scheduler.schedule({ event, progress, others, redo });
        return "accepted";
      }
      if (clock.monotonic() >= deadline) return "open";
      await clock.sleep(tryAgainMs);
    }
  };
}
