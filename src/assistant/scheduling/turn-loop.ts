import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Begun, Inbox, InboxRecord } from "../../core/inbox.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import { createRareLog, type Log } from "../../core/telemetry.ts";
import { inTime, sleepUnlessAborted } from "../../support/clock.ts";
import { createConcurrencyLimit } from "../../support/queues.ts";
import { backoffMs, backoffs } from "../../support/retry.ts";
import { type ActiveTurn, createActiveTurn, isOvertaken } from "./active-turn.ts";
import { decideNext, type Task } from "./decide-next.ts";
import { createInFlightEvents } from "./in-flight.ts";

/** How many milliseconds abandoned turns may take to end. */
const abortGraceMs = 2000;
/** How many conversations are resumed at once, so that new questions need not wait for all of them. */
const maxResumed = 16;
/** How often the store is asked what other processes did to running turns, in milliseconds. */
const lookMs = 700;

/** Does what the records of each conversation ask for, one thing at a time. */
export interface TurnLoop {
  /** Looks at the conversation of an event, now or when another process has released it. */
  kick(event: IncomingEvent): void;
  /** Lets a turn that runs here learn of a change of its record. Without one it looks. */
  noticed(key: string, record: InboxRecord | undefined): void;
  /** The key of the turn that runs here in a conversation. */
  runningIn(conversationId: string): string | undefined;
  /** Kicks every conversation of a platform with open records. Resolves to the number of records. */
  round(platformId: string): Promise<number>;
  readonly inFlight: ReturnType<typeof createInFlightEvents>;
  /** The number of turns that run and that wait for their conversation. */
  load(): { readonly running: number; readonly waiting: number };
  readonly isStopping: () => boolean;
  /** Begins no more turns, and abandons those that run after the deadline. Resolves to their number. */
  stop(options: { readonly deadlineMs: number }): Promise<number>;
}

/** Runs attempts. */
export interface AttemptRunner {
  /** Begins a task, or resolves to `undefined` where somebody was faster. */
  begin(task: Task): Promise<Begun | undefined>;
  /** Runs what has begun to its end. `again`: an outage ended it. */
  run(task: Task["kind"], begun: Begun, active: ActiveTurn): Promise<"ended" | "again">;
}

interface TurnLoopOptions {
  readonly inbox: Pick<Inbox, "open" | "openIn" | "read">;
  readonly queue: ConversationQueue;
  readonly attempts: AttemptRunner;
  readonly log: Log;
  readonly clock: Clock;
}

/** A conversation that is served. Private and lone calls are listed in another one. */
interface Place {
  readonly conversationId: string;
  readonly listedIn: string;
}

/** The right to serve a conversation. */
interface Lease {
  readonly lost: AbortSignal;
  readonly isFresh: () => boolean;
}

interface Served {
  isKicked: boolean;
  /** Whether it waits for a conversation that another process has. */
  mayWait: boolean;
  /** Ends a wait. */
  wake: AbortController;
  /** Resolves when it has been served, or has failed for the first time. */
  readonly firstTry: PromiseWithResolvers<void>;
}

export function createTurnLoop(options: TurnLoopOptions): TurnLoop {
  const { inbox, queue, attempts, log, clock } = options;
  const served = new Map<string, Served>();
  const active = new Map<string, ActiveTurn>();
  const inFlight = createInFlightEvents();
  const stopping = new AbortController();
  const limit = createConcurrencyLimit(maxResumed);
  const warnRarely = createRareLog(log, () => clock.monotonic());
  const stopLooking = queue.isShared ? clock.every(lookMs, () => void look()) : () => {};
  let isLooking = false;

  const placeOf = (event: IncomingEvent): Place => ({
    conversationId: storedIn(event),
    listedIn: event.conversationId,
  });

  /** Resolves when the conversation has been served, or has failed for the first time. */
  function kick(place: Place, mayWait: boolean): Promise<void> {
    const { conversationId } = place;
    const known = served.get(conversationId);
    if (known !== undefined) {
      known.isKicked = true;
      known.mayWait ||= mayWait;
      known.wake.abort();
      return Promise.resolve();
    }
    const firstTry = Promise.withResolvers<void>();
    const state: Served = { isKicked: true, mayWait, wake: new AbortController(), firstTry };
    served.set(conversationId, state);
    void serve(place, state).finally(() => {
      served.delete(conversationId);
      firstTry.resolve();
      // The next start answers what waits.
      if (stopping.signal.aborted) inFlight.keepOnly(conversationId, [], inFlight.mark());
      // Whoever kicked after the last look waits for another one.
      if (state.isKicked && !stopping.signal.aborted) void kick(place, state.mayWait);
    });
    return firstTry.promise;
  }

  /** Waits until the time is over or somebody kicks. */
  async function wait(state: Served, ms: number, lease?: AbortSignal): Promise<void> {
    state.wake = new AbortController();
    const signals = [state.wake.signal, stopping.signal, ...(lease === undefined ? [] : [lease])];
    if (!state.isKicked) await sleepUnlessAborted(ms, AbortSignal.any(signals), clock);
  }

  async function serve(place: Place, state: Served): Promise<void> {
    const { conversationId } = place;
    for (let failures = 0; !stopping.signal.aborted;) {
      state.isKicked = false;
      let outcome: "done" | "again" = "done";
      const work = async (lost: AbortSignal, isFresh = () => true): Promise<void> => {
        outcome = await serveHeld(place, state, { lost, isFresh });
      };
      try {
        if (state.mayWait) await queue.run(conversationId, work);
        else await queue.runUnlessTaken(conversationId, work);
      } catch (error) {
        if (isParleyError(error, "stopping")) return;
        // Every open turn meets an outage of the store again and again until it is over.
        if (isParleyError(error, "store-unavailable"))
          warnRarely("store", { err: error }, "turns not begun; they stay open until the store responds");
        else log.error({ conversation: conversationId, err: error }, "turn not begun; it stays open");
        outcome = "again";
      }
      failures = outcome === "done" ? 0 : failures + 1;
      if (failures > 0) state.firstTry.resolve();
      if (failures > 0) await wait(state, backoffMs(failures, backoffs.again));
      else if (!state.isKicked) return;
    }
  }

  /** Does one thing after the other until nothing is left, or an outage ends it. */
  async function serveHeld(place: Place, state: Served, lease: Lease): Promise<"done" | "again"> {
    const { conversationId, listedIn } = place;
    while (!lease.lost.aborted && !stopping.signal.aborted) {
      state.isKicked = false;
      const lookedAt = inFlight.mark();
      const listed = await inbox.openIn(listedIn);
      const open = listed.filter(({ event }) => storedIn(event) === conversationId);
      inFlight.keepOnly(
        conversationId,
        open.map(({ event }) => event),
        lookedAt,
      );
      const next = decideNext(open, clock.now());
      if (next.kind === "nothing") return "done";
      if (lease.lost.aborted) break;
      if (next.kind === "wait") {
        await wait(state, next.until - clock.now(), lease.lost);
        continue;
      }
      const begun = await attempts.begin(next);
      if (begun === undefined) continue;
      if ((await runHeld(conversationId, { task: next, begun, lease })) === "again") return "again";
    }
    // Who has the conversation now may have looked before this process could store something.
    return lease.lost.aborted ? "again" : "done";
  }

  async function runHeld(
    conversationId: string,
    { task, begun, lease }: { readonly task: Task; readonly begun: Begun; readonly lease: Lease },
  ): Promise<"ended" | "again"> {
    const { turn, event } = begun.record;
    const { lost, isFresh } = lease;
    const current = createActiveTurn({ key: event.key, attempt: turn.attempt, isFresh });
    const onLeaseLost = (): void => {
      current.abandon(new ParleyError("stopping", "lease lost", { cause: lost.reason }));
    };
    lost.addEventListener("abort", onLeaseLost);
    if (lost.aborted) onLeaseLost();
    active.set(conversationId, current);
    try {
      return await attempts.run(task.kind, begun, current);
    } catch (error) {
      if (!isOvertaken(error)) throw error;
      log.info({ turn: event.key, attempt: turn.attempt }, "attempt left to the next one");
      return "ended";
    } finally {
      lost.removeEventListener("abort", onLeaseLost);
      if (active.get(conversationId) === current) active.delete(conversationId);
    }
  }

  /** Looks whether other processes have changed the turns that run here. One read covers all of them. */
  async function look(): Promise<void> {
    if (isLooking || active.size === 0) return;
    isLooking = true;
    try {
      const running = [...active.values()];
      const records = await inbox.read(running.map(({ key }) => key));
      for (const turn of running) {
        const record = records.find(({ event }) => event.key === turn.key);
        // A store that lost its data knows nothing.
        if (record !== undefined) turn.notice(record);
      }
    } catch (error) {
      if (!isParleyError(error)) throw error;
      log.debug({ err: error }, "running turns not looked up");
    } finally {
      isLooking = false;
    }
  }

  async function isIdleWithin(ms: number): Promise<boolean> {
    const idle = queue.idle().then(() => true);
    return (await inTime(idle, ms, { clock })) ?? false;
  }

  return {
    kick: (event) => void kick(placeOf(event), true),
    noticed(key, record) {
      const turn = [...active.values()].find((one) => one.key === key);
      if (turn === undefined) return;
      if (record === undefined) void look();
      else turn.notice(record);
    },
    runningIn: (conversationId) => active.get(conversationId)?.key,
    async round(platformId) {
      const open = (await inbox.open()).filter(({ event }) => event.platform === platformId);
      const places = new Map(open.map(({ event }) => [storedIn(event), placeOf(event)]));
      for (const place of places.values())
        if (!served.has(place.conversationId)) void limit(() => kick(place, false));
      return open.length;
    },
    inFlight,
    load: () => ({ running: active.size, waiting: Math.max(0, inFlight.size - active.size) }),
    isStopping: () => stopping.signal.aborted,
    async stop({ deadlineMs }) {
      stopping.abort();
      queue.close();
      try {
        if (await isIdleWithin(deadlineMs)) return 0;
        const abandoned = active.size;
        for (const turn of active.values())
          turn.abandon(new ParleyError("stopping", "the process is stopping"));
        if (!(await isIdleWithin(abortGraceMs)))
          log.warn({ turns: active.size }, "turns did not end after the abort; the next start resumes them");
        return abandoned;
      } finally {
        stopLooking();
      }
    },
  };
}
