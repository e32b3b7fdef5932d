import type { Asker } from "../../core/access.ts";
import type { Command } from "../../core/command.ts";
import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError, codeOf } from "../../core/errors.ts";
import type { IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { Platform } from "../../core/platform.ts";
import type { ReceiveOptions } from "../../core/receiver.ts";
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
  /** A person asks. Otherwise a command does in its caller's name, which was counted with the command. */
  readonly isCounted: boolean;
}

interface EventIntakeOptions {
  readonly inbox: Pick<Inbox, "accept" | "read" | "refuse">;
  readonly queue: Pick<ConversationQueue, "isShared">;
  readonly loop: Pick<TurnLoop, "inFlight" | "isStopping" | "kick">;
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

/** The answer to a question about an event: whether it may go on, or the error that refuses it. */
type Answer = "passed" | ParleyError;

/** What is known of an event when it comes. An answer is absent until it was asked for. */
export interface IntakeFacts {
  readonly isCounted: boolean;
  /** Where it is not kept now, it is delivered again, looked up, or sent again by its command. */
  readonly comesAgain: boolean;
  /** This process begins nothing more. */
  readonly isClosed: boolean;
  /** Messages that were sent before it may still come: from another process, or from a look-up. */
  readonly mayOvertake: "nothing" | "others" | "missed";
  /** Whether the operator and the place allow it. */
  readonly rules?: Answer;
  /** Whether this process has room for it. `known`: it has accepted it before. */
  readonly room?: Answer | "known";
  /** Whether what it costs may be spent. */
  readonly budget?: Answer;
  /** Whether its person may ask once more in this minute. It is counted with the question. */
  readonly rate?: Answer;
}

/** What is done with an event. */
type Intake =
  /** One more answer is needed. */
  | { readonly kind: "ask"; readonly what: "rules" | "room" | "budget" | "rate" }
  /** It is left to its next delivery: nothing is stored, and whether it is answered is not known. */
  | { readonly kind: "leave"; readonly error: ParleyError }
  /** Nothing is stored of it, because it is denied at each delivery. */
  | { readonly kind: "deny"; readonly error: ParleyError }
  /** It is refused for good, unless it is known. */
  | { readonly kind: "refuse"; readonly error: ParleyError }
  /** It is stored if it is absent. Its turn gives earlier messages so many milliseconds to come. */
  | { readonly kind: "accept"; readonly waitMs: number };

/** Decides what is done with an event. */
export function decideIntake(facts: IntakeFacts): Intake {
  const { isClosed, isCounted, mayOvertake, rules, room } = facts;
  const stopping = (): ParleyError => new ParleyError("stopping", "the process is stopping");
  if (isClosed && facts.comesAgain) return { kind: "leave", error: stopping() };
  if (rules === undefined) return { kind: "ask", what: "rules" };
  if (rules !== "passed") return { kind: "deny", error: rules };
  if (isClosed) return { kind: "refuse", error: stopping() };
  if (room === undefined) return { kind: "ask", what: "room" };
  if (room !== "passed" && room !== "known") return { kind: "refuse", error: room };
  // What was accepted before was counted then.
  for (const what of isCounted && room === "passed" ? (["budget", "rate"] as const) : []) {
    const answer = facts[what];
    if (answer === undefined) return { kind: "ask", what };
    if (answer !== "passed") return { kind: "refuse", error: answer };
  }
  return { kind: "accept", waitMs: waitsMs[mayOvertake] };
}

/**
 * Returns a function that checks whether an event may be answered, accepts it durably and lets its turn
 * begin. It throws as {@link Receiver.receive} does.
 */
export function createEventIntake(options: EventIntakeOptions) {
  const { inbox, queue, loop, platforms, limits, tracer, log } = options;
  const { inFlight } = loop;
  const inOrder = createKeyedQueue();

  /**
   * A turn begins once what came before it in its conversation is accepted or refused, by this process
   * or another one. Otherwise it could be answered without a message before it.
   */
  async function takeInOrder(
    incoming: IncomingEvent,
    how: IntakeOptions,
    arrival: Span,
  ): Promise<"accepted" | "duplicate"> {
    const decided = Promise.withResolvers<void>();
    const earlierDecided = inOrder.run(incoming.conversationId, () => decided.promise);
    const event = toCallIfWritten(incoming, options.commands, platforms.get(incoming.platform));
    let result: "accepted" | "duplicate";
    try {
      result = await take(event, how, {
        comesAgain: incoming.kind === "message" || !how.isCounted,
        decided: decided.resolve,
      });
    } finally {
      decided.resolve();
    }
    if (result === "duplicate") return result;
    await earlierDecided;
    options.keepArrival(event.key, arrival);
    loop.kick(event);
    return result;
  }

  /** Asks what the decision needs, and does it. It calls `decided` before a refusal. */
  async function take(
    event: IncomingEvent,
    how: IntakeOptions,
    { comesAgain, decided }: { readonly comesAgain: boolean; readonly decided: () => void },
  ): Promise<"accepted" | "duplicate"> {
    let facts: IntakeFacts = {
      isCounted: how.isCounted,
      comesAgain,
      isClosed: loop.isStopping(),
      mayOvertake: how.mayBeEarly === true ? "missed" : mayOvertake(event) ? "others" : "nothing",
    };
    let result: "accepted" | "duplicate" | undefined;
    let counted: Awaited<ReturnType<TurnRate["count"]>> | undefined;
    const ask = {
      async rules(): Promise<Answer> {
        try {
          await options.expectAllowed(event);
        } catch (error) {
          if (isParleyError(error, "access-denied")) return error;
          throw error;
        }
        options.onSeen(event);
        return "passed";
      },
      room: () => takeRoom(event),
      budget: async (): Promise<Answer> => (await options.overBudget(event)) ?? "passed",
      async rate(): Promise<Answer> {
        counted = await options.turnRate.count(event.author.id);
        return counted.refusal ?? "passed";
      },
    };
    try {
      for (;;) {
        const decision = decideIntake(facts);
        switch (decision.kind) {
          case "ask":
            facts = { ...facts, [decision.what]: await ask[decision.what]() };
            break;
          case "leave":
          case "deny":
            throw decision.error;
          case "refuse":
            decided();
            await refuse(event, decision.error, how);
            return "duplicate";
          case "accept":
            result = await store(event, decision.waitMs);
            return result;
        }
      }
    } finally {
      if (result !== "accepted") {
        if (facts.room === "passed") inFlight.delete(event.key);
        await counted?.undo();
      }
    }
  }

  async function store(event: IncomingEvent, waitMs: number): Promise<"accepted" | "duplicate"> {
    try {
      const dueAt = waitMs > 0 ? options.clock.now() + waitMs : undefined;
      const result = await acceptDurably(inbox, event, options.clock, dueAt);
      inFlight.stored(event.key);
      return result;
    } catch (error) {
      // It may be stored although the response of the store was lost.
      loop.kick(event);
      throw error;
    }
  }

  /**
   * Refuses an event for good before its author is told. It returns without an error if the event is known:
   * then it is answered, or its author was told before, so that there are no words.
   */
  async function refuse(
    { key }: IncomingEvent,
    refusal: ParleyError,
    { canResend = false }: ReceiveOptions,
  ): Promise<void> {
    const isKnown = canResend
      ? (await inbox.read([key])).length > 0
      : (await inbox.refuse(key)) === "duplicate";
    if (!isKnown) throw refusal;
  }

  function mayOvertake({ kind, platform }: IncomingEvent): boolean {
    if (kind !== "message") return false;
    const order = platforms.get(platform)?.deliversInOrder;
    return order === "never" || (order === "to-one" && queue.isShared);
  }

  /** It counts before it is durable, so that many events at once cannot exceed the limits together. */
  function takeRoom(event: IncomingEvent): Answer | "known" {
    const { author, platform, address, key } = event;
    if (inFlight.has(key)) return "known";
    const waiting = inFlight.countOf(author.id);
    if (waiting >= limits.eventsPerPerson)
      return new ParleyError("busy", "too many events in flight for one person", { detail: { waiting } });
    // Behind a full delivery, an answer could not be shown for a long time.
    if (inFlight.size >= limits.events || platforms.get(platform)?.delivery?.isFull(address) === true)
      return new ParleyError("busy", "too many events in flight", { retryAfterMs: 60_000 });
    inFlight.add(event);
    return "passed";
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
        const result = await takeInOrder(incoming, how, arrival);
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

/** How long a message waits for earlier ones that may still come, in milliseconds. */
const waitsMs = { nothing: 0, others: 150, missed: 5000 } as const;

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
