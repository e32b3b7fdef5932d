import { createConcurrencyLimit } from "../../support/queues.ts";
import type { Clock } from "../../core/clock.ts";
import { isParleyError, ParleyError } from "../../core/errors.ts";
import { storedIn, type IncomingEvent } from "../../core/events.ts";
import type { Inbox } from "../../core/inbox.ts";
import type { ConversationQueue } from "../../core/storage.ts";
import { createRareLog, type Log } from "../../core/telemetry.ts";
import { backoffMs, backoffs } from "../../support/retry.ts";
import {
  toOpenTurns,
  createActiveTurn,
  type ActiveTurn,
  editsOf,
  eventsOf,
  keysOf,
  reconcile,
  takeBatch,
  type PendingTurn,
  type RunBatch,
} from "./pending-turn.ts";
import { createRecent } from "../../support/recent.ts";
import { inTime, sleepUnlessAborted } from "../../support/clock.ts";

/** How many milliseconds abandoned turns may take to end. */
const abortGraceMs = 2000;
/** How long a message waits for earlier ones that other processes may be accepting. */
const settleMs = 150;
/** How many milliseconds a turn waits at most for people who keep changing its question. */
const maxQuietMs = 10_000;

interface ScheduleOptions {
  readonly unlessLeased?: boolean;
  readonly mayBeLater?: boolean;
  readonly quietMs?: number;
}

/** Runs turns one at a time and in order within a conversation. Conversations run in parallel. */
export interface TurnScheduler {
  /**
   * Queues a turn. `unlessLeased` skips it if another process holds the conversation and may run this turn.
   * The next recovery looks again. `mayBeLater` waits a moment for earlier messages that other processes are
   * accepting. `quietMs` waits until people have changed nothing for this time, and prolongs the wait of a
   * turn that is waiting.
   */
  schedule(turn: PendingTurn, options?: ScheduleOptions): void;
  /** The turn that runs in a conversation. */
  activeIn(conversationId: string): ActiveTurn | undefined;
  readonly inFlight: InFlightEvents;
  /** The number of turns that run and that wait for their conversation. */
  load(): { readonly running: number; readonly waiting: number };
  readonly isStopping: () => boolean;
  /** Starts no more turns, and abandons those that run after the deadline. Resolves to their number. */
  stop(options: { readonly deadlineMs: number }): Promise<number>;
}

interface TurnSchedulerOptions {
  readonly inbox: Pick<Inbox, "listOpenIn" | "lookUp">;
  readonly queue: ConversationQueue;
  readonly log: Log;
  readonly clock: Clock;
  /**
   * Called before a batch with edited messages runs. It applies the edits to the store and resolves to the
   * turns to run then. It may reject only if the batch stays open.
   */
  prepare(batch: readonly PendingTurn[]): Promise<readonly PendingTurn[]>;
  readonly runBatch: RunBatch;
}

export function createTurnScheduler(options: TurnSchedulerOptions): TurnScheduler {
  const { inbox, queue, log, clock } = options;
  const pending = new Map<string, PendingTurn[]>();
  const active = new Map<string, ActiveTurn>();
  const inFlight = createInFlightEvents();
  const waits = createWaits(clock);
  const stopping = new AbortController();
  const warnRarely = createRareLog(log, () => clock.monotonic());

  function schedule(
    turn: PendingTurn,
    { unlessLeased = false, mayBeLater = false, quietMs }: ScheduleOptions = {},
  ): void {
    const conversationId = storedIn(turn.event);
    if (mayBeLater) waits.settle(conversationId);
    if (quietMs !== undefined) {
      waits.keepQuiet(conversationId, quietMs);
      const { key } = turn.event;
      if (pending.get(conversationId)?.some((other) => keysOf(other).includes(key)) === true) return;
    }
    for (const event of eventsOf(turn)) inFlight.add(event);
    const turns = pending.get(conversationId);
    if (turns === undefined) pending.set(conversationId, [turn]);
    else turns.push(turn);
    enqueue(turn, unlessLeased);
  }

  /** Queues one run of the conversation, which takes the first turn of that time. */
  function enqueue(turn: PendingTurn, unlessLeased: boolean): void {
    const conversationId = storedIn(turn.event);
    const work = (lease: AbortSignal): Promise<void> => runNext(conversationId, lease);
    const run = unlessLeased ? queue.runUnlessTaken(conversationId, work) : queue.run(conversationId, work);
    run.then(
      (hasRun) => {
        if (hasRun === false) drop(conversationId, turn);
      },
      (error: unknown) => {
        if (isParleyError(error, "stopping"))
          log.info({ turn: turn.event.key }, "turn left for the next start");
        else if (isParleyError(error, "store-unavailable"))
          // Every open turn meets an outage of the store again and again until it is over.
          warnRarely("store", { err: error }, "turns not started; they stay open until the store responds");
        else
          log.error(
            { turn: turn.event.key, conversation: conversationId, err: error },
            "turn not started; it stays open",
          );
        drop(conversationId, turn);
      },
    );
  }

  /** Forgets a turn that could not start without lease or store. Recovery finds it in the inbox again. */
  function drop(conversationId: string, turn: PendingTurn): void {
    const turns = pending.get(conversationId);
    const index = turns?.findIndex(({ event }) => event.key === turn.event.key) ?? -1;
    if (turns === undefined || index === -1) return;
    const [dropped = turn] = turns.splice(index, 1);
    dropped.arrival?.end();
    if (turns.length === 0) pending.delete(conversationId);
    for (const key of keysOf(dropped)) inFlight.delete(key);
  }

  /**
   * Updates the pending turns with what was left open here and with what other processes have done. Returns
   * those that may run. What was scheduled during the read waits for the next one, because other processes
   * may have accepted earlier messages meanwhile.
   */
  async function reconcileWithInbox(conversationId: string): Promise<PendingTurn[]> {
    const turns = pending.get(conversationId);
    if (turns === undefined) return [];
    const before = [...turns];
    // The inbox lists a lone call under its conversation, although it is stored separately.
    const listedIn = before[0]?.event.conversationId ?? conversationId;
    const open = (await inbox.listOpenIn(listedIn)).filter(({ event }) => storedIn(event) === conversationId);
    const merged = reconcile(before, toOpenTurns(open, clock.now()));
    const mergedKeys = new Set(merged.flatMap(keysOf));
    // Turns that were scheduled during the read may be missing in its result.
    const isNew = (turn: PendingTurn) => !before.includes(turn) && !mergedKeys.has(turn.event.key);
    const now = [...merged, ...turns.filter(isNew)];
    const known = new Set(turns.map(({ event }) => event.key));
    for (const key of turns.flatMap(keysOf)) inFlight.delete(key);
    for (const event of now.flatMap(eventsOf)) inFlight.add(event);
    turns.splice(0, turns.length, ...now);
    for (const turn of now) if (!known.has(turn.event.key)) enqueue(turn, false);
    return merged;
  }

  async function runNext(conversationId: string, lease: AbortSignal): Promise<void> {
    await waits.pass(conversationId, [lease, stopping.signal]);
    const mayRun = await reconcileWithInbox(conversationId);
    // Another process may have the conversation by now.
    lease.throwIfAborted();
    const turns = pending.get(conversationId) ?? [];
    const taken = takeBatch(mayRun);
    turns.splice(0, turns.length, ...turns.filter((turn) => !taken.includes(turn)));
    if (turns.length === 0) pending.delete(conversationId);
    if (taken.length === 0) return;
    const hasEdits = taken.some(needsPreparing);
    const batch = hasEdits ? await prepare(taken) : taken;
    if (batch.length === 0) return;
    const keys = batch.flatMap(keysOf);
    const current = createActiveTurn(keys);
    const onLeaseLost = (): void => {
      current.abandon(new ParleyError("stopping", "lease lost", { cause: lease.reason }));
    };
    lease.addEventListener("abort", onLeaseLost);
    // The lease may have been lost while edits were applied.
    if (lease.aborted) onLeaseLost();
    active.set(conversationId, current);
    let outcome: "ended" | "left-open" = "left-open";
    try {
      const open = hasEdits ? await checkAgain(batch, current) : batch;
      if (stopping.signal.aborted) return;
      outcome = open.length === 0 ? "ended" : await options.runBatch(open, current);
    } finally {
      waits.noteEnd(conversationId, outcome);
      lease.removeEventListener("abort", onLeaseLost);
      if (active.get(conversationId) === current) active.delete(conversationId);
      for (const key of keys) inFlight.delete(key);
    }
  }

  /** Applies edits. The turns that are left may then have other events. */
  async function prepare(taken: readonly PendingTurn[]): Promise<readonly PendingTurn[]> {
    let batch: readonly PendingTurn[] = [];
    try {
      batch = await options.prepare(taken);
    } finally {
      for (const key of taken.flatMap(keysOf)) inFlight.delete(key);
    }
    for (const event of batch.flatMap(eventsOf)) inFlight.add(event);
    return batch;
  }

  /**
   * Drops events that were deleted or answered while edits were applied, and stops the turn if somebody asked
   * for that before it could be found as active.
   */
  async function checkAgain(batch: readonly PendingTurn[], current: ActiveTurn): Promise<PendingTurn[]> {
    const entries = await inbox.lookUp(current.keys);
    const stopped = entries.find(({ state }) => state === "stopping");
    if (stopped !== undefined && batch[0]?.state !== "stopping") current.stop(stopped.stoppedBy ?? "");
    const open = new Set(entries.flatMap(({ event, state }) => (state === "answered" ? [] : [event.key])));
    return batch
      .filter(({ event }) => open.has(event.key))
      .map((turn) => ({ ...turn, others: turn.others.filter(({ key }) => open.has(key)) }));
  }

  async function isIdleWithin(ms: number): Promise<boolean> {
    const idle = queue.idle().then(() => true);
    return (await inTime(idle, ms, { clock })) ?? false;
  }

  return {
    schedule,
    activeIn: (conversationId) => active.get(conversationId),
    inFlight,
    load: () => ({
      running: active.size,
      waiting: [...pending.values()].reduce((sum, turns) => sum + turns.length, 0),
    }),
    isStopping: () => stopping.signal.aborted,
    async stop({ deadlineMs }) {
      stopping.abort();
      queue.close();
      if (await isIdleWithin(deadlineMs)) return 0;
      const abandoned = active.size;
      for (const turn of active.values())
        turn.abandon(new ParleyError("stopping", "the process is stopping"));
      if (!(await isIdleWithin(abortGraceMs)))
        log.warn({ turns: active.size }, "turns did not end after the abort; the next start resumes them");
      return abandoned;
    },
  };
}

/** What a conversation waits for before its next batch runs. */
function createWaits(clock: Clock) {
  /** The number of batches in a row that were left open, by conversation. */
  const failures = createRecent<number>(1000);
  /**
   * The `monotonic` time until which a conversation waits, because other processes may accept events or
   * people may edit theirs, and since when it has waited for edits.
   */
  const waiting = createRecent<{ readonly until: number; readonly editedSince?: number }>(1000);
  return {
    /** Waits for earlier messages that other processes are accepting. */
    settle(conversationId: string): void {
      waiting.set(conversationId, { ...waiting.get(conversationId), until: clock.monotonic() + settleMs });
    },
    /** Waits until people have changed nothing for this time. */
    keepQuiet(conversationId: string, quietMs: number): void {
      const now = clock.monotonic();
      const { editedSince = now } = waiting.get(conversationId) ?? {};
      waiting.set(conversationId, { until: Math.min(now + quietMs, editedSince + maxQuietMs), editedSince });
    },
    /** Turns that were left open run again first, but not in a busy loop. */
    noteEnd(conversationId: string, outcome: "ended" | "left-open"): void {
      if (outcome === "ended") failures.delete(conversationId);
      else failures.set(conversationId, (failures.get(conversationId) ?? 0) + 1);
    },
    /** Resolves when the wait is over or one of the signals aborts. */
    async pass(conversationId: string, signals: AbortSignal[]): Promise<void> {
      const failed = failures.get(conversationId) ?? 0;
      const startedAt = clock.monotonic();
      const failedMs = failed === 0 ? 0 : backoffMs(failed, backoffs.moment);
      // The time to wait for may move while this waits.
      for (;;) {
        const until = Math.max(startedAt + failedMs, waiting.get(conversationId)?.until ?? 0);
        const waitMs = until - clock.monotonic();
        if (waitMs <= 0 || signals.some(({ aborted }) => aborted)) break;
        await sleepUnlessAborted(waitMs, AbortSignal.any(signals), clock);
      }
      waiting.delete(conversationId);
    },
  };
}

function needsPreparing(turn: PendingTurn): boolean {
  return turn.isEdited === true || editsOf(turn).size > 0;
}

type InFlightEvents = ReturnType<typeof createInFlightEvents>;

type FlyingEvent = Pick<IncomingEvent, "author" | "conversationId" | "key" | "sentAt">;

/** The events, by key, that this process has accepted or resumed but not closed. */
export function createInFlightEvents() {
  const events = new Map<string, Pick<IncomingEvent, "author" | "conversationId" | "sentAt">>();
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  return {
    has: (key: string): boolean => events.has(key),
    add({ key, author, conversationId, sentAt }: FlyingEvent): void {
      events.set(key, { author, conversationId, sentAt });
    },
    delete(key: string): void {
      events.delete(key);
      waiting.get(key)?.resolve();
      waiting.delete(key);
    },
    get size(): number {
      return events.size;
    },
    /** The number of one person's events in flight. */
    countOf: (authorId: string): number =>
      [...events.values()].filter(({ author }) => author.id === authorId).length,
    /** When the person's first event in flight of a conversation was sent. */
    askedAt: (conversationId: string, authorId: string): number | undefined =>
      events.values().find((event) => event.conversationId === conversationId && event.author.id === authorId)
        ?.sentAt,
    /** Resolves when the key is not in flight, which may be at once. */
    async whenDone(key: string): Promise<void> {
      // The key may be added again before this continues, so it is checked again.
      while (events.has(key)) {
        const done = waiting.get(key) ?? Promise.withResolvers<void>();
        waiting.set(key, done);
        await done.promise;
      }
    },
  };
}

/** How many conversations are resumed at once, so that new questions need not wait for all of them. */
const maxConversations = 16;

interface RecoveryOptions {
  readonly inbox: Pick<Inbox, "listOpen">;
  readonly now: () => number;
  readonly scheduler: Pick<TurnScheduler, "inFlight" | "isStopping" | "schedule">;
}

/**
 * Returns a function that finds a platform's open turns of an earlier run or of another process, and resumes
 * a few conversations at a time. It resolves to the number of turns.
 */
export function createRecovery({ inbox, now, scheduler }: RecoveryOptions) {
  const { inFlight } = scheduler;
  const limit = createConcurrencyLimit(maxConversations);
  /** Conversations that wait for their resumption. */
  const queued = new Set<string>();

  /** A new turn of the conversation may have resumed them meanwhile: then they are in flight or answered. */
  async function resume(conversationId: string, turns: readonly PendingTurn[]): Promise<void> {
    queued.delete(conversationId);
    const open = turns.filter(({ event }) => !inFlight.has(event.key) && !scheduler.isStopping());
    for (const turn of open) scheduler.schedule(turn, { unlessLeased: true });
    await Promise.all(open.map(({ event }) => inFlight.whenDone(event.key)));
  }

  return async function recover(platformId: string): Promise<number> {
    const open = (await inbox.listOpen()).filter(({ event }) => event.platform === platformId);
    const turns = toOpenTurns(open, now()).filter(({ event }) => !inFlight.has(event.key));
    for (const [conversationId, its] of Map.groupBy(turns, ({ event }) => storedIn(event))) {
      if (queued.has(conversationId)) continue;
      queued.add(conversationId);
      void limit(() => resume(conversationId, its));
    }
    return turns.length;
  };
}
