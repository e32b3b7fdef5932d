import { describe, expect, it } from "vitest";
import {
  type ActiveTurn,
  keysOf,
  type PendingTurn,
  reconcile,
  toOpenTurns,
} from "../../../../src/assistant/scheduling/pending-turn.ts";
import {
  createInFlightEvents,
  createTurnScheduler,
  type TurnScheduler,
} from "../../../../src/assistant/scheduling/turn-scheduler.ts";
import { createLocalQueue } from "../../../../src/conversations/leased-queue.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import { call, message, silentLog } from "../../../support/fakes.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

const turn = (key: string, conversationId = "fake:c1"): PendingTurn => ({
  event: message(key, { key, conversationId }),
  progress: undefined,
  others: [],
});

interface HarnessOptions {
  readonly log?: Log;
  /** Reading a conversation's open events rejects with what this returns, if it returns something. */
  readonly storeError?: () => Error | undefined;
  /** Reading them takes until this resolves. The result is that of its beginning. */
  readonly whileRead?: () => Promise<void>;
}

function createHarness(
  closed: ReadonlySet<string> = new Set(),
  { log = silentLog, storeError, whileRead }: HarnessOptions = {},
) {
  const runs: { keys: string[]; active: ActiveTurn; end: () => void; leave: () => void }[] = [];
  const queue = createLocalQueue();
  const clock = createManualClock(0);
  const accepted = new Map<string, IncomingEvent>();
  const answered = new Set(closed);
  const created = createTurnScheduler({
    inbox: {
      lookUp: () => Promise.resolve([]),
      async listOpenIn(conversationId) {
        const error = storeError?.();
        if (error !== undefined) throw error;
        const open = [...accepted.values()]
          .filter((event) => event.conversationId === conversationId && !answered.has(event.key))
          .map((event) => ({ event, acceptedAt: 0, state: "open" as const }));
        await whileRead?.();
        return open;
      },
    },
    queue,
    log,
    clock,
    prepare: (batch) => Promise.resolve(batch),
    runBatch: (batch, active) =>
      new Promise<"ended" | "left-open">((resolve) => {
        const keys = batch.flatMap(keysOf);
        const end = (): void => {
          for (const key of keys) answered.add(key);
          resolve("ended");
        };
        runs.push({ keys, active, end, leave: () => resolve("left-open") });
      }),
  });
  const scheduler: TurnScheduler = {
    ...created,
    schedule(scheduled, how) {
      accepted.set(scheduled.event.key, scheduled.event);
      created.schedule(scheduled, how);
    },
  };
  /** Returns the newest of `count` runs, which begins after exactly `inMs` milliseconds. */
  const running = async (count: number, inMs = 0) => {
    if (inMs > 0) {
      await clock.advance(inMs - 1);
      expect(runs.length).toBeLessThan(count);
    }
    await clock.advance(Math.min(1, inMs));
    expect(runs).toHaveLength(count);
    return runs.at(-1)!;
  };
  const acceptElsewhere = (event: IncomingEvent): void => void accepted.set(event.key, event);
  return { scheduler, runs, running, queue, clock, acceptElsewhere };
}

describe("the turn scheduler", () => {
  it("runs one turn of a conversation at a time; what arrives meanwhile joins the next", async () => {
    const { scheduler, runs, running, queue } = createHarness();
    scheduler.schedule(turn("a"));
    const first = await running(1);
    scheduler.schedule(turn("b"));
    scheduler.schedule(turn("c"));
    expect(scheduler.inFlight.size).toBe(3);
    first.end();
    const second = await running(2);
    expect(second.keys).toEqual(["b", "c"]);
    second.end();
    await queue.idle();
    expect(runs).toHaveLength(2);
    expect(scheduler.inFlight.size).toBe(0);
  });

  it("runs conversations side by side", async () => {
    const { scheduler, runs, running } = createHarness();
    scheduler.schedule(turn("a", "fake:c1"));
    scheduler.schedule(turn("b", "fake:c2"));
    await running(2);
    expect(scheduler.activeIn("fake:c1")?.signal.aborted).toBe(false);
    expect(scheduler.activeIn("fake:c2")).not.toBe(scheduler.activeIn("fake:c1"));
    for (const run of runs) run.end();
  });

  it("gives a private command a conversation of its own, which waits for nobody", async () => {
    const { scheduler, runs, running } = createHarness();
    scheduler.schedule(turn("a"));
    const event = call("models", {}, { key: "private", inConversation: true, isPrivate: true });
    scheduler.schedule({ event, progress: undefined, others: [] });
    await running(2);
    expect(runs.map(({ keys }) => keys)).toEqual([["a"], ["private"]]);
    for (const run of runs) run.end();
  });

  it("does not run what another process has closed", async () => {
    const { scheduler, runs, queue } = createHarness(new Set(["a"]));
    scheduler.schedule(turn("a"));
    await queue.idle();
    expect(runs).toEqual([]);
    expect(scheduler.inFlight.has("a")).toBe(false);
  });

  it("runs again what was left open, before what came later, and more and more rarely", async () => {
    const { scheduler, runs, running } = createHarness();
    const call1 = {
      ...turn("a"),
      event: call("ask", {}, { key: "a", conversationId: "fake:c1", inConversation: true }),
    };
    scheduler.schedule(call1);
    scheduler.schedule(turn("b"));
    (await running(1)).leave();
    for (const [index, afterMs] of [50, 100, 200].entries()) (await running(index + 2, afterMs)).leave();
    (await running(5, 400)).end();
    (await running(6)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "a", "a", "a", "a", "b"]);
  });

  it("waits a moment where another process may be accepting an earlier message, and answers that first", async () => {
    const { scheduler, runs, running, clock, acceptElsewhere } = createHarness();
    const event = message("b", { key: "b", sentAt: clock.now() - 10 });
    scheduler.schedule({ event, progress: undefined, others: [] }, { mayBeLater: true });
    acceptElsewhere(message("a", { key: "a", sentAt: clock.now() - 11 }));
    (await running(1, 150)).end();
    (await running(2)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "b"]);
  });

  it("answers what came during the read of the inbox after what another process accepted meanwhile", async () => {
    let during = (): void => undefined;
    const whileRead = (): Promise<void> => Promise.resolve(during());
    const { scheduler, runs, running, acceptElsewhere } = createHarness(new Set(), { whileRead });
    during = () => {
      during = () => undefined;
      acceptElsewhere(message("b", { key: "b", sentAt: 1_800_000_000_000 }));
      scheduler.schedule({ ...turn("c"), event: message("c", { key: "c", sentAt: 1_800_000_000_001 }) });
    };
    scheduler.schedule(turn("a"));
    for (const count of [1, 2, 3]) (await running(count)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "b", "c"]);
  });

  it("says once a minute that turns cannot start during an outage of the store, however many there are", async () => {
    const lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
    const note = (level: string) => (fields: Readonly<Record<string, unknown>>, text: string) =>
      void lines.push({ level, message: text, fields });
    const log: Log = { ...silentLog, warn: note("warn"), error: note("error") };
    let failure: Error | undefined = new ParleyError("store-unavailable", "the store does not respond");
    const { scheduler, clock, running } = createHarness(new Set(), { log, storeError: () => failure });
    for (let round = 0; round < 13; round += 1) {
      for (const id of ["a", "b", "c"]) scheduler.schedule(turn(id, `fake:${id}`));
      await clock.advance(5000);
    }
    expect(scheduler.inFlight.size).toBe(0);
    const message = "turns not started; they stay open until the store responds";
    expect(lines).toMatchObject([
      { level: "warn", message, fields: { count: 1 } },
      { level: "warn", message, fields: { count: 36 } },
    ]);
    failure = undefined;
    scheduler.schedule(turn("a", "fake:a"));
    (await running(1)).end();
    failure = new Error("something else");
    scheduler.schedule(turn("b", "fake:b"));
    await clock.advance(1);
    expect(lines.at(-1)).toMatchObject({ level: "error", message: "turn not started; it stays open" });
  });

  it("stops at once when nothing runs, and starts nothing more", async () => {
    const { scheduler, runs, clock } = createHarness();
    expect(await scheduler.stop({ deadlineMs: 60_000 })).toBe(0);
    scheduler.schedule(turn("late"));
    await clock.advance(0);
    expect(scheduler.inFlight.size).toBe(0);
    expect(runs).toEqual([]);
  });

  it("abandons what still runs at the deadline, and drops what waits", async () => {
    const { scheduler, running, clock } = createHarness();
    scheduler.schedule(turn("a"));
    const run = await running(1);
    scheduler.schedule(turn("b"));
    run.active.signal.addEventListener("abort", run.end);
    const stopped = scheduler.stop({ deadlineMs: 9000 });
    await clock.advance(8999);
    expect(run.active.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(run.active.signal.reason).toMatchObject({ code: "stopping" });
    expect(await stopped).toBe(1);
    expect(scheduler.inFlight.size).toBe(0);
  });
});

describe("createInFlightEvents", () => {
  it("tells when a key is done, at once where it is not in flight", async () => {
    const inFlight = createInFlightEvents();
    const event = message("x", { key: "a" });
    await inFlight.whenDone("a");
    inFlight.add(event);
    let isDone = false;
    const waiting = inFlight.whenDone("a").then(() => {
      isDone = true;
    });
    // It is deleted and added again before anything else runs, so it is still in flight.
    inFlight.delete("a");
    inFlight.add(event);
    await Promise.resolve();
    await Promise.resolve();
    expect(isDone).toBe(false);
    inFlight.delete("a");
    await waiting;
    expect(inFlight.size).toBe(0);
    expect(inFlight.countOf(event.author.id)).toBe(0);
  });
});

describe("the order of open turns", () => {
  const entry = (event: IncomingEvent, attempts?: number) => ({
    event,
    acceptedAt: 0,
    state: "open" as const,
    ...(attempts === undefined ? {} : { turn: { keys: [event.key], address: {}, attempts } }),
  });
  const sent = (key: string, sentAt: number) => message(key, { key, sentAt });
  const order = (...entries: readonly ReturnType<typeof entry>[]) =>
    toOpenTurns(entries, 0).map(({ event }) => event.key);

  describe("open turns", () => {
    it("are in the order of sending where several processes accepted the messages in another order", () => {
      expect(order(entry(sent("b", 2)), entry(sent("a", 1)), entry(sent("c", 3)))).toEqual(["a", "b", "c"]);
    });

    it("of the same millisecond are in the order of the platform's ids", () => {
      const keys = ["slack:T1:C1:1700000000.000100", "slack:T1:C1:1700000000.000200"];
      const [first = "", second = ""] = keys;
      expect(order(entry(sent(second, 5)), entry(sent(first, 5)))).toEqual(keys);
      expect(order(entry(sent("b", 5)), entry(sent("a", 5)))).toEqual(["b", "a"]);
    });

    it("come after what has begun, and do not change places with commands, whose time is another clock's", () => {
      expect(order(entry(sent("b", 2), 1), entry(sent("a", 1)))).toEqual(["b", "a"]);
      expect(order(entry(sent("b", 2)), entry(sent("a", 1), 1))).toEqual(["a", "b"]);
      const ask = call("ask", {}, { key: "ask", sentAt: 9 });
      expect(order(entry(ask), entry(sent("a", 1)))).toEqual(["ask", "a"]);
    });
  });
});

describe("pending turns", () => {
  const fresh = (key: string): PendingTurn => ({
    event: message(key, { key }),
    progress: undefined,
    others: [],
  });
  /** Lists an event as the inbox does, started `attempts` times, and answering `others` too. */
  const listed = (key: string, attempts = 0, others: readonly string[] = []): PendingTurn => ({
    event: message(key, { key }),
    progress: { keys: [key, ...others], address: { at: `reply to ${key}` }, attempts },
    others: others.map((other) => message(other, { key: other })),
  });
  const shown = (turns: readonly PendingTurn[]) =>
    turns.map(
      (turn) => `${keysOf(turn).join("+")}${turn.progress === undefined ? "" : ` ${turn.progress.attempts}`}`,
    );

  describe("pending turns of a conversation that other processes share", () => {
    it("are unchanged where the others have done nothing", () => {
      expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a"), listed("b")]))).toEqual(["a", "b"]);
    });

    it("drop what the others have answered", () => {
      expect(shown(reconcile([fresh("a"), fresh("b")], [listed("b")]))).toEqual(["b"]);
      expect(reconcile([fresh("a")], [])).toEqual([]);
    });

    it("begin with what the others accepted earlier, without what they accepted later", () => {
      const turns = reconcile([fresh("b")], [listed("a"), listed("b"), listed("c")]);
      expect(shown(turns)).toEqual(["a 0", "b"]);
    });

    it("resume what the others started, in its reply", () => {
      const [turn] = reconcile([fresh("a")], [listed("a", 1)]);
      expect(turn?.progress).toMatchObject({ attempts: 1, address: { at: "reply to a" } });
    });

    it("resume a batch as one turn, also where only its last message is pending here", () => {
      expect(shown(reconcile([fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
      expect(shown(reconcile([fresh("a"), fresh("b")], [listed("a", 1, ["b"])]))).toEqual(["a+b 1"]);
    });

    it("resume a batch whole, also where its first message was about to be resumed here", () => {
      expect(shown(reconcile([listed("a")], [listed("a", 1, ["b", "c"])]))).toEqual(["a+b+c 1"]);
    });

    it("do not seal a Retry for its age", () => {
      const retried: PendingTurn = { ...listed("a", 4), others: [] };
      const [turn] = reconcile([retried], [{ ...listed("a", 4), isSealed: true }]);
      expect(turn?.isSealed).toBeUndefined();
    });
  });
});
