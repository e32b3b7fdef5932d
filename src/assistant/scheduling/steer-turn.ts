import { storedIn } from "../../core/events.ts";
import type { Access, Actor } from "../../core/access.ts";
import type { CancelTimer, Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import type { Inbox, InboxEntry, ReopenReason, ReplacedAnswer } from "../../core/inbox.ts";
import type { PressResult } from "../../core/press.ts";
import type { Log } from "../../core/telemetry.ts";
import { translate } from "../../words/translate.ts";
import type { TurnRate } from "../access/admission.ts";
import { toOpenTurns, type ActiveTurn, editsOf, type RunBatch, toEditedError } from "./pending-turn.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";

interface SteeringOptions {
  readonly inbox: Pick<Inbox, "listOpenIn" | "lookUp" | "reopen" | "stop">;
  readonly scheduler: Pick<TurnScheduler, "activeIn" | "inFlight" | "isStopping" | "schedule">;
  readonly access: Pick<Access, "isAdmin">;
  readonly turnRate: TurnRate;
  readonly clock: Clock;
  readonly log: Log;
}

/** Stops a turn, or runs an ended one again into the same reply. A turn's key is that of its first event. */
export interface Steering {
  /**
   * Stops a turn in any process. `key` is that of one of its events, or the conversation in which it runs.
   * When it resolves, no process runs the turn again, and this is durable.
   * @throws ParleyError `not-permitted`, `store-unavailable`
   */
  stop(key: string, by: Actor): Promise<PressResult>;
  /** Retries a failed turn for anybody. @throws ParleyError `rate-limited`, `stopping` `store-unavailable` */
  retry(key: string, by: Actor): Promise<PressResult>;
  /** Runs a command as confirmed, for its caller. @throws ParleyError `stopping`, `store-unavailable` */
  confirm(key: string, by: Actor): Promise<PressResult>;
  /**
   * Runs an answered turn again. The new answer replaces the stored one. The rerun survives a restart once
   * this resolves. `open` means that it runs, waits, or has run since. `gone` means that it was erased, or
   * that it was answered over a day ago and is not its conversation's last turn.
   * @throws ParleyError `store-unavailable`, `stopping`
   */
  replace(key: string, reason: ReopenReason, answer: ReplacedAnswer): Promise<"accepted" | "open" | "gone">;
}

/** Whether somebody may control the turn of these events, as one of its askers or as a moderator. */
export function maySteer(
  by: Actor,
  entries: readonly Pick<InboxEntry, "event">[],
  access: Pick<Access, "isAdmin">,
): boolean {
  const isAsker = entries.some(({ event }) => event.author.id === by.author.id);
  return isAsker || by.origin?.isManager === true || access.isAdmin(by);
}

/** How many milliseconds a turn may take to close after its reply, because buttons are visible earlier. */
const closingMs = 1000;
const tryAgainMs = 100;

export function createSteering(options: SteeringOptions): Steering {
  const { access, clock, inbox, log, scheduler, turnRate } = options;

  async function stopTurnOf(key: string, by: Actor): Promise<"stopped" | "ended"> {
    const [entry] = await inbox.lookUp([key]);
    if (entry === undefined || entry.state === "answered" || entry.event.platform !== by.platform)
      return "ended";
    const running = (): ActiveTurn | undefined => {
      const active = scheduler.activeIn(storedIn(entry.event));
      return active?.keys.includes(key) === true ? active : undefined;
    };
    const keys = running()?.keys ?? entry.turn?.keys ?? [key];
    if (!maySteer(by, await inbox.lookUp(keys), access))
      throw new ParleyError("not-permitted", "somebody else's turn", {
        detail: { problem: translate("steer.not-yours-to-stop") },
      });
    // The operator's own page has one person, who needs no name.
    const name = by.origin === undefined ? "" : by.author.name;
    // The visible words are stored too, because this process may end before the turn stores its answer.
    const stopped = await inbox.stop(keys, name, running()?.soFar?.(name));
    if (stopped.length === 0) return "ended";
    const active = running();
    active?.stop(name);
    if (active !== undefined) return "stopped";
    // Another process that runs it ends its reply. If none does, the reply is ended here.
    const turns = toOpenTurns(await inbox.lookUp(stopped), clock.now());
    for (const turn of turns) scheduler.schedule(turn);
    return "stopped";
  }

  /** Reopens a turn that does not run in this process, and schedules it. */
  async function reopen(
    ...[key, reason, replaces]: Parameters<Inbox["reopen"]>
  ): Promise<"accepted" | "open" | "gone"> {
    if (scheduler.isStopping()) throw new ParleyError("stopping", "the process is stopping");
    if (scheduler.inFlight.has(key)) return "open";
    const reopened = await inbox.reopen(key, reason, replaces);
    if (typeof reopened === "string") return reopened;
    const { turn: progress, ...turn } = reopened;
    scheduler.schedule({ ...turn, progress, ...(reason === "confirm" ? { isConfirmed: true } : {}) });
    return "accepted";
  }

  /** The button is visible before its turn is closed. The press is acknowledged now and runs afterwards. */
  async function reopenWhenDone(key: string, reason: "retry" | "confirm"): Promise<PressResult> {
    const reopened = await reopen(key, reason);
    if (reopened === "gone") return { kind: "gone" };
    if (reopened === "open")
      void scheduler.inFlight
        .whenDone(key)
        .then(() => reopenWhenDone(key, reason))
        .catch((error: unknown) => log.warn({ turn: key, err: error }, "turn not run again"));
    return { kind: "done" };
  }

  return {
    async stop(key, by) {
      const [active] = scheduler.activeIn(key)?.keys ?? [];
      const open = active === undefined ? await inbox.listOpenIn(key) : [];
      const begun = active ?? open.find(({ turn }) => turn !== undefined)?.event.key;
      return (await stopTurnOf(begun ?? key, by)) === "stopped"
        ? { kind: "done" }
        : { kind: "told", markdown: translate("steer.ended") };
    },
    async retry(key, by) {
      const counted = await turnRate.count(by.author.id);
      if (counted.refusal !== undefined) throw counted.refusal;
      let result: PressResult | undefined;
      try {
        result = await reopenWhenDone(key, "retry");
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
      return reopenWhenDone(key, "confirm");
    },
    async replace(key, reason, answer) {
      const deadline = clock.monotonic() + closingMs;
      for (;;) {
        const reopened = await reopen(key, reason, answer);
        if (reopened !== "open" || clock.monotonic() >= deadline) return reopened;
        await clock.sleep(tryAgainMs);
      }
    },
  };
}

/** How often the store is asked what other processes did to running turns, in milliseconds. */
const intervalMs = 700;

/**
 * Ends each running batch soon after another process has stopped it, or has learned that its question was
 * edited or deleted. While turns run, one read at a time covers all turns of this process.
 */
export function withStopWatch(
  runBatch: RunBatch,
  {
    inbox,
    log,
    clock,
  }: { readonly inbox: Pick<Inbox, "lookUp" | "knows">; readonly log: Log; readonly clock: Clock },
): RunBatch {
  const running = new Set<{ readonly active: ActiveTurn; readonly edits: ReadonlyMap<string, number> }>();
  let cancel: CancelTimer | undefined;
  let isReading = false;

  async function look(): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      const turns = [...running];
      const keys = turns.flatMap(({ active }) => active.keys);
      const entries = await inbox.lookUp(keys);
      const found = new Set(entries.map(({ event }) => event.key));
      for (const key of keys) {
        // What is known and has no content was withdrawn. A store that lost its data knows nothing.
        if (found.has(key) || !(await inbox.knows(key))) continue;
        for (const { active } of turns) active.deleteMessages([key]);
      }
      for (const { event, state, stoppedBy = "" } of entries) {
        const turn = turns.find(({ active }) => active.keys.includes(event.key));
        if (state === "stopping" && turn?.active.keys[0] === event.key) turn.active.stop(stoppedBy);
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
    // Such a batch only ends its reply.
    if (batch[0]?.state === "withdrawn") return await runBatch(batch, active);
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
