import { ParleyError } from "../../core/errors.ts";
import type { Actor } from "../../core/access.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Inbox, TurnProgress } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

export interface RerunOptions {
  readonly inbox: Pick<Inbox, "lookUp" | "reopen">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
  /** @throws ParleyError where the rules do not allow somebody to use the bot there */
  readonly expectAllowed: (by: Actor) => Promise<void>;
  readonly turnRate: TurnRate;
  readonly log: Log;
}

/** Runs an ended turn again into the same reply: Retry after a failure, or a command that asked for confirmation. */
export function createRerunTurn(options: RerunOptions): Pick<Receiver, "retry" | "confirm"> {
  const { inbox, scheduler, expectAllowed, turnRate, log } = options;

  async function rerun(key: string, how: { readonly isConfirmed?: true }): Promise<"accepted" | "gone"> {
    if (scheduler.isStopping()) throw new ParleyError("stopping", "the process is stopping");
    if (scheduler.inFlight.has(key)) {
      // The button is visible before the turn is closed. The click is acknowledged now and runs then.
      const later = scheduler.inFlight.whenDone(key).then(() => rerun(key, how));
      later.catch((error: unknown) => {
        log.warn({ turn: key, err: error }, "turn not run again");
      });
      return "accepted";
    }
    const entry = await inbox.reopen(key);
    if (entry === undefined) return "gone";
    const progress: TurnProgress = entry.turn ?? { keys: [key], address: entry.event.address, attempts: 1 };
    const others: IncomingMessage[] = [];
    for (const otherKey of progress.keys.slice(1)) {
      const other = (await inbox.reopen(otherKey))?.event;
      if (other?.kind === "message") others.push(other);
    }
    scheduler.schedule({ event: entry.event, progress, others, ...how });
    return "accepted";
  }

  return {
    async retry(key, by) {
      await expectAllowed(by);
      const counted = await turnRate.count(by.author.id);
      if (counted.refusal !== undefined) throw counted.refusal;
      let outcome: "accepted" | "gone" | undefined;
      try {
        outcome = await rerun(key, {});
      } finally {
        if (outcome !== "accepted") await counted.undo();
      }
      return outcome;
    },
    async confirm(key, by) {
      await expectAllowed(by);
      const [entry] = await inbox.lookUp([key]);
      if (entry?.event.kind !== "call") return "gone";
      if (entry.event.author.id !== by.author.id) return "refused";
      return rerun(key, { isConfirmed: true });
    },
  };
}
