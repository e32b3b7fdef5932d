import { ParleyError } from "../../core/errors.ts";
import type { InHand } from "./in-flight-events.ts";
import type { Inbox, TurnProgress } from "../../core/storage.ts";
import type { IncomingMessage } from "../../core/events.ts";
import type { Log } from "../../core/telemetry.ts";
import type { Receiver } from "../../core/platform.ts";
import type { Waiting } from "./pending-turns.ts";

export interface AgainOptions {
  readonly inbox: Pick<Inbox, "lookUp" | "reopen">;
  readonly isStopping: () => boolean;
  readonly inHand: Pick<InHand, "has" | "untilFree">;
  readonly log: Log;
  readonly enqueue: (turn: Waiting) => void;
}

/** Runs turns that have ended once more, into the same reply: because they failed, or because they asked first. */
export function createAgain(options: AgainOptions): Pick<Receiver, "retry" | "confirm"> {
  const { inbox, isStopping, inHand, enqueue, log } = options;

  async function run(key: string, how: { readonly isConfirmed?: true }): Promise<"accepted" | "gone"> {
    if (isStopping()) throw new ParleyError("stopping", "the process is stopping");
    if (inHand.has(key)) {
      // The button is up before the turn is closed, and people are quick. Nobody is kept waiting for that.
      const again = inHand.untilFree(key).then(() => run(key, how));
      again.catch((error: unknown) => {
        log.warn({ key, err: error }, "a turn could not be run again");
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
    enqueue({ event: entry.event, progress, others, ...how });
    return "accepted";
  }

  return {
    retry: (key) => run(key, {}),
    async confirm(key, authorId) {
      const [entry] = await inbox.lookUp([key]);
      if (entry?.event.kind !== "call") return "gone";
      if (entry.event.author.id !== authorId) return "refused";
      return run(key, { isConfirmed: true });
    },
  };
}
