import type { Asker } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import { isParleyError, ParleyError, codeOf } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Receiver, Platform } from "../../core/platform.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import { type Log, type Meter, type Tracer, inTurn } from "../../core/telemetry.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import { toCallIfWritten } from "../commands/run-command.ts";
import { toOpenTurns, storedIn } from "./pending-turn.ts";
import type { createRecovery } from "./recovery.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";
import type { createTurnTraces } from "./turn-traces.ts";
import { createRecent } from "../../support/recent.ts";

/** Limits for this process. */
export interface IntakeLimits {
  /** How many accepted events may be unanswered. Further ones are refused with `busy`. */
  readonly events: number;
  /** The same limit for one person's events. */
  readonly eventsPerPerson: number;
}

/** Checks whether events may be answered, accepts them durably and schedules their turns. */
interface EventIntake {
  /**
   * Accepts an event as the first step of its turn, also while the process stops. `isCounted` says whether it
   * counts for its person's limits.
   * @throws ParleyError of the rules, `busy`, `rate-limited`, `over-budget`, `store-unavailable`
   */
  keep(event: IncomingEvent, how: { readonly isCounted: boolean }): Promise<"accepted" | "duplicate">;
}

interface EventIntakeOptions {
  readonly inbox: Pick<Inbox, "accept" | "isOpen" | "knows">;
  readonly queue: Pick<ConversationQueue, "isShared">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "schedule">;
  readonly recovery: Pick<ReturnType<typeof createRecovery>, "resumeFirst">;
  readonly refusals: Pick<Refusals, "isWaiting">;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly commands: ReadonlyMap<string, Command>;
  readonly limits: IntakeLimits;
  readonly turnRate: TurnRate;
  readonly traces: ReturnType<typeof createTurnTraces>;
  readonly tracer: Tracer;
  readonly meter: Pick<Meter, "refused">;
  readonly log: Log;
  /** Rejects with the error of the operator's rules or those of the place. */
  expectAllowed(asker: Asker): Promise<void>;
  /** Returns an error if its person or place has spent too much. */
  overBudget(event: IncomingEvent): Promise<ParleyError | undefined>;
  /** Called for each event that may be answered. */
  onSeen(event: IncomingEvent): void;
}

/** Creates the {@link EventIntake}. */
export function createEventIntake(options: EventIntakeOptions): EventIntake {
  const { inbox, queue, scheduler, recovery, platforms, limits, traces, tracer, log } = options;
  const { inFlight } = scheduler;

  async function accept(
    incoming: IncomingEvent,
    { isCounted }: { readonly isCounted: boolean },
  ): Promise<"accepted" | "duplicate"> {
    await options.expectAllowed(incoming);
    if (options.refusals.isWaiting(incoming.key)) return "duplicate";
    options.onSeen(incoming);
    const isRedelivered = inFlight.has(incoming.key);
    const isBusyNow = !isRedelivered && isBusy(incoming);
    const event = toCallIfWritten(incoming, options.commands, platforms.get(incoming.platform));
    // It counts before it is durable, so that many events at once cannot exceed the limits together.
    if (!isBusyNow) inFlight.add(event);
    let counted: Awaited<ReturnType<TurnRate["count"]>> | undefined;
    let result: "accepted" | "duplicate" | undefined;
    try {
      let refusal = isBusyNow ? toBusyError(incoming) : undefined;
      if (isCounted && !isRedelivered) refusal ??= await options.overBudget(event);
      if (isCounted && !isRedelivered && refusal === undefined) {
        counted = await options.turnRate.count(event.author.id);
        refusal = counted.refusal;
      }
      if (refusal === undefined) result = await acceptDurably(inbox, event);
      // If it was accepted before, it is answered. If it was refused before, its author has been told.
      else if (await inbox.knows(incoming.key)) return "duplicate";
      else throw refusal;
    } finally {
      if (result !== "accepted") {
        if (!isRedelivered && !isBusyNow) inFlight.delete(event.key);
        await counted?.undo();
      }
    }
    if (result === "accepted") begin(event);
    return result;
  }

  function begin(event: IncomingEvent): void {
    recovery.resumeFirst(storedIn(event));
    const isInOrder = platforms.get(event.platform)?.deliversInOrder !== false;
    const mayBeLater =
      !queue.isShared || event.kind !== "message" ? undefined : isInOrder ? "when-slow" : "always";
    scheduler.schedule({ event, progress: undefined, others: [] }, { mayBeLater });
  }

  function logReceived(event: IncomingEvent, result: "accepted" | "duplicate"): void {
    const { platform, kind, conversationId } = event;
    log.debug({ platform, kind, result, conversation: conversationId }, "event received");
  }

  function isBusy({ author, platform }: IncomingEvent): boolean {
    if (inFlight.countOf(author.id) >= limits.eventsPerPerson || inFlight.size >= limits.events) return true;
    // An answer could not be shown for a long time.
    return platforms.get(platform)?.delivery?.isFull() === true;
  }

  function toBusyError({ author }: IncomingEvent): ParleyError {
    const waiting = inFlight.countOf(author.id);
    return waiting >= limits.eventsPerPerson
      ? new ParleyError("busy", "too many events in flight for one person", { detail: { waiting } })
      : new ParleyError("busy", "too many events in flight", { retryAfterMs: 60_000 });
  }

  return {
    async keep(incoming, how) {
      const { key, platform, kind } = incoming;
      const isKnown = inFlight.has(key);
      const arrival = traces.arrived(incoming);
      const span = tracer.start("accept", { parent: arrival });
      return await inTurn({ turn: key, span: arrival }, async () => {
        try {
          const result = await accept(incoming, how);
          logReceived(incoming, result);
          span.set({ "parley.result": result });
          if (result === "duplicate" && !isKnown) traces.end([key], result);
          return result;
        } catch (error) {
          log.debug({ platform, kind, code: codeOf(error) }, "event not accepted");
          options.meter.refused({ platform, code: codeOf(error) });
          span.fail(error);
          if (!isKnown) traces.end([key], codeOf(error));
          throw error;
        } finally {
          span.end();
        }
      });
    },
  };
}

/** Attempts start within this time, because platforms want an acknowledgement within 3 s. */
const patienceMs = 1500;

/**
 * Accepts an event, and retries for a moment if the store is unavailable. A person should not be told of an
 * outage that is over at once.
 * @throws ParleyError `store-unavailable`
 */
export async function acceptDurably(
  inbox: Pick<Inbox, "accept" | "isOpen">,
  event: IncomingEvent,
): Promise<"accepted" | "duplicate"> {
  let hasFailed = false;
  const result = await retry(() => inbox.accept(event), {
    deadline: performance.now() + patienceMs,
    delayMs(error, attempt) {
      hasFailed = true;
      return isParleyError(error, "store-unavailable") ? backoffMs(attempt, backoffs.moment) : undefined;
    },
  });
  if (result === "accepted" || !hasFailed) return result;
  // The failed attempt may have been written. The event then belongs to this process and is still open.
  return (await inbox.isOpen(event.key)) ? "accepted" : "duplicate";
}

/** How many refusals may wait for the store. Beyond that the oldest is given up. */
const maxWaiting = 10_000;

interface RefusalOptions {
  readonly inbox: Pick<Inbox, "refuse" | "lookUp" | "isOpen">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
  /** Returns Unix milliseconds. */
  readonly now: () => number;
  readonly log: Log;
}

/** The events of which people were told that they are not accepted. */
interface Refusals extends Pick<Receiver, "refuse"> {
  /** Whether a refusal of this key waits for the store. */
  isWaiting(key: string): boolean;
  /** Tries each later refusal only once. Refusals that wait reject with `stopping`. */
  close(): void;
}

/**
 * Keeps refusals in memory until the store has them. If the event was accepted after all, by a write whose
 * outcome was unknown, the refusal starts the turn instead.
 */
export function createRefusals({ inbox, scheduler, now, log }: RefusalOptions): Refusals {
  const waiting = createRecent<Promise<"refused" | "accepted">>(maxWaiting);

  const closing = new AbortController();

  async function settle(key: string): Promise<"refused" | "accepted"> {
    const writing = retry(() => inbox.refuse(key), {
      signal: closing.signal.aborted ? undefined : closing.signal,
      delayMs: (error, attempt) =>
        isParleyError(error, "store-unavailable") && !closing.signal.aborted
          ? backoffMs(attempt, backoffs.shared)
          : undefined,
    });
    const outcome = await writing.finally(() => waiting.delete(key));
    if (outcome === "accepted") await startUnlessRunning(key);
    return outcome;
  }

  async function startUnlessRunning(key: string): Promise<void> {
    if (scheduler.inFlight.has(key) || scheduler.isStopping()) return;
    try {
      if (!(await inbox.isOpen(key))) return;
      const [turn] = toOpenTurns(await inbox.lookUp([key]), now());
      if (turn !== undefined && !scheduler.inFlight.has(key))
        scheduler.schedule(turn, { unlessLeased: true });
    } catch (error) {
      log.warn({ turn: key, err: error }, "accepted event not started; recovery starts it");
    }
  }

  return {
    isWaiting: (key) => waiting.has(key),
    close() {
      closing.abort(new ParleyError("stopping", "the process is stopping"));
    },
    refuse(key) {
      const known = waiting.get(key);
      if (known !== undefined) return known;
      const settled = settle(key);
      waiting.set(key, settled);
      return settled;
    },
  };
}
