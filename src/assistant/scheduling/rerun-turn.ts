import type { Actor } from "../../core/access.ts";
import type { Clock } from "../../core/clock.ts";
import { ParleyError } from "../../core/errors.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Inbox, Redo, RedoOptions, TurnProgress } from "../../core/inbox.ts";
import type { PressResult } from "../../core/press.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

interface RerunOptions {
  readonly inbox: Pick<Inbox, "lookUp" | "reopen">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
  readonly turnRate: TurnRate;
  readonly log: Log;
}

/** Runs an ended turn again into the same reply. `key` is that of its first event. */
export interface RerunTurn {
  /** Retries a failed turn for anybody. @throws ParleyError `rate-limited`, `stopping` `store-unavailable` */
  retry(key: string, by: Actor): Promise<PressResult>;
  /** Runs a command as confirmed, for its caller. @throws ParleyError `stopping`, `store-unavailable` */
  confirm(key: string, by: Actor): Promise<PressResult>;
}

/** Creates {@link RerunTurn}. */
export function createRerunTurn(options: RerunOptions): RerunTurn {
  const { inbox, scheduler, turnRate, log } = options;

  async function rerun(key: string, how: { readonly isConfirmed?: true }): Promise<PressResult> {
    if (scheduler.isStopping()) throw new ParleyError("stopping", "the process is stopping");
    if (scheduler.inFlight.has(key)) {
      // The button is visible before the turn is closed. The press is acknowledged now and runs afterwards.
      const later = scheduler.inFlight.whenDone(key).then(() => rerun(key, how));
      later.catch((error: unknown) => {
        log.warn({ turn: key, err: error }, "turn not run again");
      });
      return { kind: "done" };
    }
    const entry = await inbox.reopen(key);
    if (entry === undefined) return { kind: "gone" };
    const progress: TurnProgress = entry.turn ?? { keys: [key], address: entry.event.address, attempts: 1 };
    const others: IncomingMessage[] = [];
    for (const otherKey of progress.keys.slice(1)) {
      const other = (await inbox.reopen(otherKey))?.event;
      if (other?.kind === "message") others.push(other);
    }
    scheduler.schedule({ event: entry.event, progress, others, ...how });
    return { kind: "done" };
  }

  return {
    async retry(key, by) {
      const counted = await turnRate.count(by.author.id);
      if (counted.refusal !== undefined) throw counted.refusal;
      let result: PressResult | undefined;
      try {
        result = await rerun(key, {});
      } finally {
        if (result?.kind !== "done") await counted.undo();
      }
      return result;
    },
    async confirm(key, by) {
      const [entry] = await inbox.lookUp([key]);
      if (entry?.event.kind !== "call") return { kind: "gone" };
      if (entry.event.author.id !== by.author.id)
        return { kind: "told", markdown: translate("press.only-asker") };
      return rerun(key, { isConfirmed: true });
    },
  };
}

/** How many milliseconds a turn may take to close after its reply, because buttons are visible earlier. */
const closingMs = 1000;
const tryAgainMs = 100;

/**
 * Runs an answered turn again into the same reply. The new answer replaces the stored one. The rerun survives
 * a restart once this resolves. `open` means that it runs, waits, or has run since. `gone` means that it was
 * erased, or that it was answered over a day ago and is not its conversation's last turn.
 * @throws ParleyError `store-unavailable`, `stopping`
 */
export type RedoTurn = (
  key: string,
  redo: Redo,
  options?: RedoOptions,
) => Promise<"accepted" | "open" | "gone">;

/** Creates {@link RedoTurn}. */
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
