import type { Asker } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError, codeOf } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Platform, ReceiveOptions } from "../../core/platform.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import { type Log, type Meter, type Tracer, inTurn } from "../../core/telemetry.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import type { TurnRate } from "../access/turn-rate.ts";
import { toCallIfWritten } from "../commands/run-command.ts";
import { storedIn } from "./pending-turn.ts";
import type { createRecovery, TurnScheduler } from "./turn-scheduler.ts";
import type { createTurnTraces } from "./turn-traces.ts";
import { createRecent, type Recent } from "../../support/recent.ts";

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
   * Accepts an event as the first step of its turn, also while the process stops.
   * @throws ParleyError as `Receiver.receive` does
   */
  keep(event: IncomingEvent, how: IntakeOptions): Promise<"accepted" | "duplicate">;
}

/** How an event is taken in. */
interface IntakeOptions extends ReceiveOptions {
  /** The event counts against what its person may ask and spend. */
  readonly isCounted: boolean;
  /** The error that refuses the event whatever the limits say. */
  readonly refusal?: ParleyError;
}

interface EventIntakeOptions {
  readonly inbox: Pick<Inbox, "accept" | "isOpen" | "knows" | "refuse">;
  readonly queue: Pick<ConversationQueue, "isShared">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "schedule">;
  readonly recovery: Pick<ReturnType<typeof createRecovery>, "resumeFirst">;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly commands: ReadonlyMap<string, Command>;
  readonly limits: IntakeLimits;
  readonly turnRate: TurnRate;
  readonly traces: ReturnType<typeof createTurnTraces>;
  readonly tracer: Tracer;
  readonly meter: Meter;
  readonly clock: Pick<Clock, "sleep">;
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
  /**
   * Keys of events whose last write had no known outcome: such an event may be stored and belong to this
   * process.
   */
  const uncertain = createRecent(maxUncertain);

  async function accept(incoming: IncomingEvent, how: IntakeOptions): Promise<"accepted" | "duplicate"> {
    await options.expectAllowed(incoming);
    options.onSeen(incoming);
    const { isCounted } = how;
    const isRedelivered = inFlight.has(incoming.key);
    const isBusyNow = !isRedelivered && isBusy(incoming);
    const event = toCallIfWritten(incoming, options.commands, platforms.get(incoming.platform));
    // It counts before it is durable, so that many events at once cannot exceed the limits together.
    if (!isBusyNow) inFlight.add(event);
    let counted: Awaited<ReturnType<TurnRate["count"]>> | undefined;
    let result: "accepted" | "duplicate" | undefined;
    try {
      let refusal = how.refusal ?? (isBusyNow ? toBusyError(incoming) : undefined);
      if (isCounted && !isRedelivered) refusal ??= await options.overBudget(event);
      if (isCounted && !isRedelivered && refusal === undefined) {
        counted = await options.turnRate.count(event.author.id);
        refusal = counted.refusal;
      }
      if (refusal === undefined) result = await acceptDurably(inbox, event, uncertain);
      else result = await refuse(event, refusal, how);
    } finally {
      if (result !== "accepted") {
        if (!isRedelivered && !isBusyNow) inFlight.delete(event.key);
        await counted?.undo();
      }
    }
    if (result === "accepted") {
      uncertain.delete(event.key);
      begin(event);
    }
    return result;
  }

  /**
   * Refuses an event for good before its author is told. An event that is known is answered, or its author
   * was told before, so that there are no words.
   */
  async function refuse(
    event: IncomingEvent,
    refusal: ParleyError,
    { canResend = false }: ReceiveOptions,
  ): Promise<"accepted" | "duplicate"> {
    const { key, platform } = event;
    const isDeliveredToAll = queue.isShared && platforms.get(platform)?.deliversInOrder !== false;
    if (isDeliveredToAll) await options.clock.sleep(othersFirstMs);
    const isKnown = canResend ? await inbox.knows(key) : (await inbox.refuse(key)) === "duplicate";
    if (!isKnown) throw refusal;
    if (!(await isWritten(inbox, key, uncertain))) return "duplicate";
    inFlight.add(event);
    return "accepted";
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

  function isBusy({ author, platform, address }: IncomingEvent): boolean {
    if (inFlight.countOf(author.id) >= limits.eventsPerPerson || inFlight.size >= limits.events) return true;
    // An answer could not be shown for a long time.
    return platforms.get(platform)?.delivery?.isFull(address) === true;
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
          options.meter({ kind: "accepted", platform });
          span.set({ "parley.result": result });
          if (result === "duplicate" && !isKnown) traces.end([key], result);
          return result;
        } catch (error) {
          log.debug({ platform, kind, code: codeOf(error) }, "event not accepted");
          options.meter({ kind: "refused", platform, code: codeOf(error) });
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

/** How long another instance that received the same event has to accept it, in milliseconds. */
const othersFirstMs = 1000;
const maxUncertain = 10_000;

/** Platforms want an acknowledgement within 3 s; attempts start within this time, in milliseconds. */
const patienceMs = 1500;

/**
 * Accepts an event, and tries again for a moment when the store is unavailable: a person is not told of an
 * outage that is over before they have read it.
 * @param uncertain keys of events for which an attempt failed; this function adds to it
 * @throws ParleyError `store-unavailable`
 */
export async function acceptDurably(
  inbox: Pick<Inbox, "accept" | "isOpen">,
  event: IncomingEvent,
  uncertain: Pick<Recent<true>, "has" | "set">,
): Promise<"accepted" | "duplicate"> {
  const result = await retry(() => inbox.accept(event), {
    deadline: performance.now() + patienceMs,
    delayMs(error, attempt) {
      uncertain.set(event.key, true);
      return isParleyError(error, "store-unavailable") ? backoffMs(attempt, backoffs.moment) : undefined;
    },
  });
  return result === "duplicate" && (await isWritten(inbox, event.key, uncertain)) ? "accepted" : result;
}

/**
 * Whether an attempt of this process that failed has been written: then the event is its own, and still open.
 */
async function isWritten(
  inbox: Pick<Inbox, "isOpen">,
  key: string,
  uncertain: Pick<Recent<true>, "has">,
): Promise<boolean> {
  return uncertain.has(key) && (await inbox.isOpen(key));
}
