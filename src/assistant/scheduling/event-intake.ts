import { AsyncLocalStorage } from "node:async_hooks";
import type { Asker } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import { codeOf, ParleyError } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Platform } from "../../core/platform.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import type { Log, Meter, Tracer } from "../../core/telemetry.ts";
import { inTurn } from "../../core/turn-scope.ts";
import { afterRequests } from "../../support/after-requests.ts";
import type { CountedTurn, TurnRate } from "../access/turn-rate.ts";
import { toCallIfWritten } from "../commands/written-command.ts";
import { acceptDurably } from "./accept-durably.ts";
import { storedIn } from "./pending-turn.ts";
import type { Recovery } from "./recovery.ts";
import type { Refusals } from "./refusals.ts";
import type { TurnScheduler } from "./turn-scheduler.ts";
import type { TurnTraces } from "./turn-traces.ts";

/**
 * With more events in flight, the turn of a command begins after its acknowledgement: it would hold up the acknowledgements
 * of others, for which people and platforms wait.
 */
const maxWithEarlyCalls = 8;

/** Bounds for this process. */
export interface IntakeLimits {
  /** Events accepted and not yet answered. Past it new ones are refused with `busy`. */
  readonly events: number;
  /** The same for one person. */
  readonly eventsPerPerson: number;
}

/** Takes events in: checks whether they may be answered, accepts them durably and schedules their turns. */
export interface EventIntake {
  /**
   * Accepts an event as the first step of its turn, also while the process stops. `isCounted`: against what its person may
   * ask and spend.
   * @throws ParleyError what the rules say, `busy`, `rate-limited`, `over-budget`, `store-unavailable`
   */
  keep(event: IncomingEvent, how: { readonly isCounted: boolean }): Promise<"accepted" | "duplicate">;
}

export interface EventIntakeOptions {
  readonly inbox: Pick<Inbox, "accept" | "isOpen" | "lookUp">;
  readonly queue: Pick<ConversationQueue, "isShared">;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "schedule">;
  readonly recovery: Pick<Recovery, "resumeFirst">;
  readonly refusals: Pick<Refusals, "isWaiting">;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly commands: ReadonlyMap<string, Command>;
  readonly limits: IntakeLimits;
  readonly turnRate: TurnRate;
  readonly traces: TurnTraces;
  readonly tracer: Tracer;
  readonly meter: Pick<Meter, "refused">;
  readonly log: Log;
  /** The operator's rules, and those of the place. Rejects with their error. */
  expectAllowed(asker: Asker): Promise<void>;
  /** The error where its person or place has spent too much. */
  overBudget(event: IncomingEvent): Promise<ParleyError | undefined>;
  /** Called for each event that may be answered. */
  onSeen(event: IncomingEvent): void;
}

/** The turn of an event that is being accepted. */
interface Beginning {
  /** Schedules it, once. */
  readonly begin: () => void;
  readonly hasBegun: () => boolean;
}

/** @see {@link EventIntake} */
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
    // Counted before it is durable, so that many at once cannot pass the bounds together.
    if (!isBusyNow) inFlight.add(event);
    let counted: CountedTurn | undefined;
    let result: "accepted" | "duplicate" | undefined;
    const turn = toBeginning(event, () => logReceived(incoming, "accepted"));
    try {
      let refusal = isBusyNow ? toBusyError(incoming) : undefined;
      if (isCounted && !isRedelivered) refusal ??= await options.overBudget(event);
      if (isCounted && !isRedelivered && refusal === undefined) {
        counted = await options.turnRate.count(event.author.id);
        refusal = counted.refusal;
      }
      if (refusal === undefined) result = await acceptEarly(event, turn);
      // Accepted before, here or by another process: it is answered, and must not be refused in words.
      else if ((await inbox.lookUp([incoming.key])).length > 0) return "duplicate";
      else throw refusal;
    } finally {
      // Where the disk fails after the event was written, its turn runs all the same.
      if (result !== "accepted" && !turn.hasBegun()) {
        if (!isRedelivered && !isBusyNow) inFlight.delete(event.key);
        await counted?.undo();
      }
    }
    // The platform waits for the acknowledgement of a command: its request goes out first.
    if (result === "accepted" && event.kind === "call") afterRequests(turn.begin);
    else if (result === "accepted") turn.begin();
    return result;
  }

  /** Its turn begins once the event is written. The acknowledgement, for which `accept` resolves, waits for the disk. */
  async function acceptEarly(event: IncomingEvent, turn: Beginning): Promise<"accepted" | "duplicate"> {
    const isCall = event.kind === "call";
    const result = await acceptDurably(inbox, event, {
      onWritten() {
        if (!isCall || inFlight.size <= maxWithEarlyCalls) turn.begin();
      },
      // A person sees whether a command is acknowledged; nobody sees whether a message is.
      canWait: !isCall,
    });
    // After an attempt that failed, its turn may have ended by now.
    return turn.hasBegun() ? "accepted" : result;
  }

  function toBeginning(event: IncomingEvent, onBegin: () => void): Beginning {
    let hasBegun = false;
    return {
      hasBegun: () => hasBegun,
      // The store calls it for all that one transaction wrote.
      begin: AsyncLocalStorage.bind(() => {
        if (hasBegun) return;
        hasBegun = true;
        onBegin();
        recovery.resumeFirst(storedIn(event));
        const isInOrder = platforms.get(event.platform)?.deliversInOrder !== false;
        const mayBeLater =
          !queue.isShared || event.kind !== "message" ? undefined : isInOrder ? "when-slow" : "always";
        scheduler.schedule({ event, progress: undefined, others: [] }, { mayBeLater });
      }),
    };
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
          // Where it is accepted, its turn has said so as it began.
          if (result === "duplicate") logReceived(incoming, result);
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
