import type { Access, Actor } from "../../core/access.ts";
import { ParleyError } from "../../core/errors.ts";
import type { Inbox, InboxEntry } from "../../core/inbox.ts";
import { translate } from "../../words/translate.ts";
import { toOpenTurns } from "./open-turns.ts";
import { storedIn } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

export interface StopTurnOptions {
  readonly inbox: Pick<Inbox, "lookUp" | "listOpenIn" | "stop">;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "schedule" | "stopTurn">;
  readonly access: Pick<Access, "isAdmin">;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** Stops turns, in whichever process they run. */
export interface StopTurn {
  /**
   * Stops the turn of an event. Durable when it resolves: no process runs it again. `ended`: it is answered.
   * @throws ParleyError `not-permitted`, `store-unavailable`
   */
  stop(key: string, by: Actor): Promise<"stopped" | "ended">;
  /** Stops the turn that runs in a conversation, or in that of a call by its key. The same otherwise. */
  stopIn(conversationId: string, by: Actor): Promise<"stopped" | "ended">;
}

/** Whether somebody may steer the turn of these events: one of those who asked, or a moderator. */
export function maySteer(
  by: Actor,
  entries: readonly Pick<InboxEntry, "event">[],
  access: Pick<Access, "isAdmin">,
): boolean {
  const isAsker = entries.some(({ event }) => event.author.id === by.author.id);
  return isAsker || by.origin?.isManager === true || access.isAdmin(by);
}

/** @see {@link StopTurn} */
export function createStopTurn({ inbox, scheduler, access, now }: StopTurnOptions): StopTurn {
  async function stop(key: string, by: Actor): Promise<"stopped" | "ended"> {
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
    // On the operator's own page there is one person.
    const name = by.origin === undefined ? "" : by.author.name;
    // The words that people see are stored with the mark: this process may end before the turn has stored its answer.
    const stopped = await inbox.stop(keys, name, running?.soFar?.(name));
    if (stopped.length === 0) return "ended";
    if (scheduler.stopTurn(keys, name)) return "stopped";
    // It runs in another process, which ends its reply itself; or in none, and its reply is ended here.
    const turns = toOpenTurns(await inbox.lookUp(stopped), now());
    for (const turn of turns) scheduler.schedule(turn);
    return "stopped";
  }

  return {
    stop,
    async stopIn(conversationId, by) {
      const [active] = scheduler.activeIn(conversationId)?.keys ?? [];
      if (active !== undefined) return await stop(active, by);
      const open = await inbox.listOpenIn(conversationId);
      const begun = open.find(({ turn }) => turn !== undefined) ?? (await inbox.lookUp([conversationId]))[0];
      return begun === undefined ? "ended" : await stop(begun.event.key, by);
    },
  };
}
