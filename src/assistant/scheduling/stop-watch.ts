import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError } from "../../core/errors.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import type { ActiveTurn } from "./active-turn.ts";
import { toEditedError } from "./edited-error.ts";
import { editsOf, type PendingTurn } from "./pending-turn.ts";

/** How often the store is asked whether a running turn was stopped, or its question edited, elsewhere; in milliseconds. */
const intervalMs = 700;

type RunBatch = (batch: readonly PendingTurn[], active: ActiveTurn) => Promise<"ended" | "left-open">;

/**
 * Runs each batch so that it ends soon after a person has stopped it, or edited its question, through another process. One read for all turns of
 * this process together, while some run.
 */
export function withStopWatch(
  runBatch: RunBatch,
  { inbox, log, clock }: { readonly inbox: Pick<Inbox, "lookUp">; readonly log: Log; readonly clock: Clock },
): RunBatch {
  const running = new Set<{ readonly active: ActiveTurn; readonly edits: ReadonlyMap<string, number> }>();
  let cancel: CancelTimer | undefined;
  let isReading = false;

  async function look(): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      const turns = [...running];
      for (const { event, stoppedBy } of await inbox.lookUp(turns.flatMap(({ active }) => active.keys))) {
        const turn = turns.find(({ active }) => active.keys.includes(event.key));
        if (stoppedBy !== undefined && turn?.active.keys[0] === event.key) turn.active.stop(stoppedBy);
        // The process that took in the edit runs it again.
        const edits = event.kind === "message" ? (event.edit?.count ?? 0) : 0;
        if (edits > (turn?.edits.get(event.key) ?? 0)) turn?.active.abandon(toEditedError());
      }
    } catch (error) {
      if (!isParleyError(error)) throw error;
      log.debug({ err: error }, "stopped turns not looked up");
    } finally {
      isReading = false;
    }
  }

  return async (batch, active) => {
    const turn = { active, edits: new Map(batch.flatMap((one) => [...editsOf(one)])) };
    running.add(turn);
    cancel ??= clock.every(intervalMs, () => void look());
    try {
      return await runBatch(batch, active);
    } finally {
      running.delete(turn);
      if (running.size === 0) {
        cancel?.();
        cancel = undefined;
      }
    }
  };
}
