import type { Asker } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError, codeOf } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Platform, ReceiveOptions } from "../../core/platform.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import { type Log, type Meter, type Span, type Tracer, inTurn } from "../../core/telemetry.ts";
import { createKeyedQueue } from "../../support/queues.ts";
import { backoffMs, retry, backoffs } from "../../support/retry.ts";
import type { TurnRate } from "../access/admission.ts";
import { toCallIfWritten } from "../commands/run-command.ts";
import type { TurnLoop } from "./turn-loop.ts";

/** Limits for this process. */
export interface IntakeLimits {
  /** How many accepted events may be unanswered. Further ones are refused with `busy`. */
  readonly events: number;
  /** The same limit for one person's events. */
  readonly eventsPerPerson: number;
}

/** How an event is taken in. */
interface IntakeOptions extends ReceiveOptions {
  /** The event counts against what its person may ask and spend. */
  readonly isCounted: boolean;
  /** The error that refuses the event whatever the limits say. */
  readonly refusal?: ParleyError;
}

interface EventIntakeOptions {
  readonly inbox: Pick<Inbox, "accept" | "read" | "refuse">;
  readonly queue: Pick<ConversationQueue, "isShared">;
  readonly loop: Pick<TurnLoop, "inFlight" | "kick">;
  /** Keeps the trace of an event until its turn begins. */
  readonly keepArrival: (key: string, arrival: Span) => void;
  readonly platforms: ReadonlyMap<string, Platform>;
  readonly commands: ReadonlyMap<string, Command>;
  readonly limits: IntakeLimits;
  readonly turnRate: TurnRate;
  readonly tracer: Tracer;
  readonly meter: Meter;
  readonly clock: Pick<Clock, "monotonic" | "now" | "sleep">;
  readonly log: Log;
  /** Rejects with the error of the operator's rules or those of the place. */
  expectAllowed(asker: Asker): Promise<void>;
  /** Returns an error if its person or place has spent too much. */
  overBudget(event: IncomingEvent): Promise<ParleyError | undefined>;
  /** Called for each event that may be answered. */
  onSeen(event: IncomingEvent): void;
}

/**
 * Returns a function that checks whether an event may be answered, accepts it durably and lets its turn
 * begin, also while the process stops. It throws as {@link Receiver.receive} does.
 */
export function createEventIntake(options: EventIntakeOptions) {
  const { inbox, queue, loop, platforms, limits, tracer, log } = options;
  const { inFlight } = loop;
  const inOrder = createKeyedQueue();

  /**
   * A turn begins once what came before it in its conversation is accepted or refused, by this process
   * or another one. Otherwise it could be answered without a message before it.
   */
  async function accept(
    incoming: IncomingEvent,
    how: IntakeOptions,
    arrival: Span,
  ): Promise<"accepted" | "duplicate"> {
    const decided = Promise.withResolvers<void>();
    const earlierDecided = inOrder.run(incoming.conversationId, () => decided.promise);
    let event: IncomingEvent | undefined;
    try {
      event = await acceptUnlessRefused(incoming, how, decided.resolve);
    } finally {
      decided.resolve();
    }
    if (event === undefined) return "duplicate";
    await earlierDecided;
    options.keepArrival(event.key, arrival);
    loop.kick(event);
    return "accepted";
  }

  /** Resolves to the event, or to `undefined` if it is a duplicate. It calls `decide` before a refusal. */
  async function acceptUnlessRefused(
    incoming: IncomingEvent,
    how: IntakeOptions,
    decide: () => void,
  ): Promise<IncomingEvent | undefined> {
    await options.expectAllowed(incoming);
    options.onSeen(incoming);
    const { isCounted } = how;
    const isRedelivered = inFlight.has(incoming.key);
    const busy = isRedelivered ? undefined : busyError(incoming);
    const event = toCallIfWritten(incoming, options.commands, platforms.get(incoming.platform));
    // It counts before it is durable, so that many events at once cannot exceed the limits together.
    if (busy === undefined) inFlight.add(event);
    let counted: Awaited<ReturnType<TurnRate["count"]>> | undefined;
    let result: "accepted" | "duplicate" | undefined;
    try {
      let refusal = how.refusal ?? busy;
      if (isCounted && !isRedelivered) refusal ??= await options.overBudget(event);
      if (isCounted && !isRedelivered && refusal === undefined) {
        counted = await options.turnRate.count(event.author.id);
        refusal = counted.refusal;
      }
      if (refusal !== undefined) {
        decide();
        await refuse(event, refusal, how);
      }
      const dueAt = mayComeLater(event) ? options.clock.now() + settleMs : undefined;
      result = refusal === undefined ? await acceptDurably(inbox, event, options.clock, dueAt) : "duplicate";
      inFlight.stored(event.key);
    } finally {
      // It may be stored although the response of the store was lost.
      if (result === undefined) loop.kick(event);
      if (result !== "accepted") {
        if (!isRedelivered && busy === undefined) inFlight.delete(event.key);
        await counted?.undo();
      }
    }
    return result === "accepted" ? event : undefined;
  }

  /**
   * Refuses an event for good before its author is told. It returns without an error if the event is known:
   * then it is answered, or its author was told before, so that there are no words.
   */
  async function refuse(
    { key, platform }: IncomingEvent,
    refusal: ParleyError,
    { canResend = false }: ReceiveOptions,
  ): Promise<void> {
    const isDeliveredToAll = queue.isShared && platforms.get(platform)?.deliversInOrder === "always";
    if (isDeliveredToAll) await options.clock.sleep(othersFirstMs);
    const isKnown = canResend
      ? (await inbox.read([key])).length > 0
      : (await inbox.refuse(key)) === "duplicate";
    if (!isKnown) throw refusal;
  }

  /** Whether messages that were sent before this one may still come. */
  function mayComeLater({ kind, platform }: IncomingEvent): boolean {
    if (kind !== "message") return false;
    const order = platforms.get(platform)?.deliversInOrder;
    return order === "never" || (order === "to-one" && queue.isShared);
  }

  function busyError({ author, platform, address }: IncomingEvent): ParleyError | undefined {
    const waiting = inFlight.countOf(author.id);
    if (waiting >= limits.eventsPerPerson)
      return new ParleyError("busy", "too many events in flight for one person", { detail: { waiting } });
    // Behind a full delivery, an answer could not be shown for a long time.
    const isFull = inFlight.size >= limits.events || platforms.get(platform)?.delivery?.isFull(address);
    return isFull === true
      ? new ParleyError("busy", "too many events in flight", { retryAfterMs: 60_000 })
      : undefined;
  }

  return async (incoming: IncomingEvent, how: IntakeOptions): Promise<"accepted" | "duplicate"> => {
    const { key, platform, kind, conversationId } = incoming;
    const arrival = tracer.start(kind === "call" ? `command ${incoming.name}` : "message", {
      parent: undefined,
      kind: "consumer",
      fields: { "parley.turn": key, "parley.platform": platform },
    });
    const span = tracer.start("accept", { parent: arrival });
    return await inTurn({ turn: key, span: arrival }, async () => {
      let outcome: string | undefined;
      try {
        const result = await accept(incoming, how, arrival);
        log.debug({ platform, kind, result, conversation: conversationId }, "event received");
        options.meter({ kind: "accepted", platform });
        span.set({ "parley.result": result });
        if (result === "duplicate") outcome = result;
        return result;
      } catch (error) {
        outcome = codeOf(error);
        log.debug({ platform, kind, code: outcome }, "event not accepted");
        options.meter({ kind: "refused", platform, code: outcome });
        span.fail(error);
        throw error;
      } finally {
        span.end();
        // The trace of an accepted event ends with its turn.
        if (outcome !== undefined) {
          arrival.set({ "parley.outcome": outcome });
          arrival.end();
        }
      }
    });
  };
}

/** How long another instance that received the same event has to accept it, in milliseconds. */
const othersFirstMs = 1000;

/** How long a message waits for earlier ones that other processes may be accepting, in milliseconds. */
const settleMs = 150;

/** Platforms want an acknowledgement within 3 s; attempts start within this time, in milliseconds. */
const patienceMs = 1500;

/**
 * Accepts an event, and tries again for a moment when the store is unavailable: a person is not told of an
 * outage that is over before they have read it. An event that a failed attempt has written is accepted.
 * @throws ParleyError `store-unavailable`. If the event is stored all the same, recovery finds it.
 */
export async function acceptDurably(
  inbox: Pick<Inbox, "accept" | "read">,
  event: IncomingEvent,
  clock: Pick<Clock, "monotonic" | "sleep">,
  dueAt?: number,
): Promise<"accepted" | "duplicate"> {
  let hasFailed = false;
  const result = await retry(() => inbox.accept(event, dueAt), {
    deadline: clock.monotonic() + patienceMs,
    clock,
    delayMs(error, attempt) {
      hasFailed = true;
      return isParleyError(error, "store-unavailable") ? backoffMs(attempt, backoffs.moment) : undefined;
    },
  });
  if (!hasFailed || result === "accepted") return result;
  const [record] = await inbox.read([event.key]);
  return record?.state === "open" ? "accepted" : result;
}
