import type { Access, Actor } from "../../core/access.ts";
import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Inbox, InboxEntry } from "../../core/inbox.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import {
  toOpenTurns,
  type ActiveTurn,
  editsOf,
  type PendingTurn,
  toEditedError,
  storedIn,
} from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

interface StopTurnOptions {
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn" | "stop">;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "schedule" | "stopTurn">;
  readonly access: Pick<Access, "isAdmin">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
}

/**
 * Stops a turn in any process. `key` is that of one of its events, or the conversation in which it runs. When
 * it resolves, no process runs the turn again, and this is durable. `ended` means that it is answered.
 * @throws ParleyError `not-permitted`, `store-unavailable`
 */
export type StopTurn = (key: string, by: Actor) => Promise<"stopped" | "ended">;

/** Whether somebody may control the turn of these events, as one of its askers or as a moderator. */
export function maySteer(
  by: Actor,
  entries: readonly Pick<InboxEntry, "event">[],
  access: Pick<Access, "isAdmin">,
): boolean {
  const isAsker = entries.some(({ event }) => event.author.id === by.author.id);
  return isAsker || by.origin?.isManager === true || access.isAdmin(by);
}

/** Creates {@link StopTurn}. */
export function createStopTurn({ inbox, scheduler, access, now }: StopTurnOptions): StopTurn {
  async function stopTurnOf(key: string, by: Actor): Promise<"stopped" | "ended"> {
    const [entry] = await inbox.lookUp([key]);
    if (entry === undefined || entry.isClosed === true || entry.event.platform !== by.platform)
      return "ended";
    const active = scheduler.activeIn(storedIn(entry.event));
    const running = active?.keys.includes(key) === true ? active : undefined;
    const keys = running?.keys ?? entry.turn?.keys ?? [key];
    if (!maySteer(by, await inbox.lookUp(keys), access))
      throw new ParleyError("not-permitted", "somebody else's turn", {
        detail: { problem: translate("steer.not-yours-to-stop") },
      });
    // The operator's own page has one person, who needs no name.
    const name = by.origin === undefined ? "" : by.author.name;
    // The visible words are stored too, because this process may end before the turn stores its answer.
    const stopped = await inbox.stop(keys, name, running?.soFar?.(name));
    if (stopped.length === 0) return "ended";
    if (scheduler.stopTurn(keys, name)) return "stopped";
    // Another process that runs it ends its reply. If none does, the reply is ended here.
    const turns = toOpenTurns(await inbox.lookUp(stopped), now());
    for (const turn of turns) scheduler.schedule(turn);
    return "stopped";
  }

  return async (key, by) => {
    const [active] = scheduler.activeIn(key)?.keys ?? [];
    if (active !== undefined) return await stopTurnOf(active, by);
    const open = await inbox.listOpenIn(key);
    return await stopTurnOf(open.find(({ turn }) => turn !== undefined)?.event.key ?? key, by);
  };
}

/** How often the store is asked whether another process stopped or edited a running turn, in milliseconds. */
const intervalMs = 700;

type RunBatch = (batch: readonly PendingTurn[], active: ActiveTurn) => Promise<"ended" | "left-open">;

/**
 * Ends each running batch soon after another process has stopped it or edited its question. While turns run,
 * one read at a time covers all turns of this process.
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
        // The process that stored the edit runs it again.
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
