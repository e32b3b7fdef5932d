import { describe, expect, it } from "vitest";
import type { ActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { toOvertaken } from "../../../../src/assistant/scheduling/active-turn.ts";
import { createInFlightEvents } from "../../../../src/assistant/scheduling/in-flight.ts";
import { createTurnLoop } from "../../../../src/assistant/scheduling/turn-loop.ts";
import { createLocalQueue } from "../../../../src/conversations/leased-queue.ts";
import { ParleyError } from "../../../../src/core/errors.ts";
import { storedIn, type IncomingEvent } from "../../../../src/core/events.ts";
import type { InboxRecord, TurnRecord, TurnState } from "../../../../src/core/inbox.ts";
import type { ConversationQueue } from "../../../../src/core/storage.ts";
import type { Log } from "../../../../src/core/telemetry.ts";
import { call, message, silentLog } from "../../../support/fakes.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

interface HarnessOptions {
  readonly log?: Log;
  readonly queue?: ConversationQueue;
  /** Reading a conversation's open events rejects with what this returns, if it returns something. */
  readonly storeError?: () => Error | undefined;
  /** Reading them takes until this resolves. The result is that of its beginning. */
  readonly whileRead?: () => Promise<void>;
}

interface RunHere {
  readonly keys: string[];
  readonly kind: string;
  readonly active: ActiveTurn;
  /** Ends it, so that its record is over. */
  readonly end: () => void;
  /** Leaves it after an outage. */
  readonly leave: () => void;
  readonly fail: (error: unknown) => void;
}

function createHarness({
  log = silentLog,
  queue = createLocalQueue(),
  storeError,
  whileRead,
}: HarnessOptions = {}) {
  const clock = createManualClock(0);
  const records = new Map<string, InboxRecord>();
  const runs: RunHere[] = [];
  const write = (record: InboxRecord): void => void records.set(record.event.key, record);
  const loop = createTurnLoop({
    inbox: {
      read: (keys) => Promise.resolve(keys.flatMap((key) => records.get(key) ?? [])),
      open: () => Promise.resolve([...records.values()]),
      async openIn(conversationId) {
        const error = storeError?.();
        if (error !== undefined) throw error;
        const open = [...records.values()].filter(({ event }) => event.conversationId === conversationId);
        await whileRead?.();
        return open;
      },
    },
    queue,
    log,
    clock,
    attempts: {
      begin({ batch }) {
        const [first] = batch as readonly [InboxRecord];
        const before = first.turn ?? {
          keys: batch.map(({ event }) => event.key),
          attempt: 0,
          since: 0,
          openedAt: 0,
          address: {},
        };
        for (const { event } of batch.slice(1)) records.delete(event.key);
        const record: TurnRecord = { ...first, turn: { ...before, attempt: before.attempt + 1 } };
        write(record);
        return Promise.resolve({ record, events: batch.map(({ event }) => event) });
      },
      run: (kind, { record }, active) =>
        new Promise((resolve, reject) => {
          runs.push({
            keys: [...record.turn.keys],
            kind,
            active,
            end() {
              records.delete(record.event.key);
              resolve("ended");
            },
            leave() {
              write({ ...record, turn: { ...record.turn, since: record.turn.attempt } });
              resolve("again");
            },
            fail: reject,
          });
        }),
    },
  });
  const accept = (event: IncomingEvent, more: Partial<InboxRecord> = {}): void =>
    write({ event, acceptedAt: clock.now(), state: "open", version: 1, ...more });
  const schedule = (event: IncomingEvent, more?: Partial<InboxRecord>): void => {
    loop.inFlight.add(event);
    accept(event, more);
    loop.inFlight.stored(event.key);
    loop.kick(event);
  };
  const change = (
    key: string,
    turn: Partial<TurnState>,
    state: InboxRecord["state"] = "open",
  ): InboxRecord => {
    const before = records.get(key) as TurnRecord;
    const changed = { ...before, state, turn: { ...before.turn, ...turn } };
    write(changed);
    return changed;
  };
  /** Returns the newest of `count` runs, which begins after exactly `inMs` milliseconds. */
  const running = async (count: number, inMs = 0): Promise<RunHere> => {
    if (inMs > 0) {
      await clock.advance(inMs - 1);
      expect(runs.length).toBeLessThan(count);
    }
    await clock.advance(Math.min(1, inMs));
    expect(runs).toHaveLength(count);
    return runs.at(-1)!;
  };
  return { loop, runs, running, queue, clock, accept, schedule, change };
}

const event = (key: string, conversationId = "fake:c1") => message(key, { key, conversationId });

describe("the loop of a conversation's holder", () => {
  it("runs one turn of a conversation at a time; what arrives meanwhile joins the next", async () => {
    const { loop, runs, running, schedule, queue } = createHarness();
    schedule(event("a"));
    const first = await running(1);
    schedule(event("b"));
    schedule(event("c"));
    expect(loop.inFlight.size).toBe(3);
    expect(loop.load()).toEqual({ running: 1, waiting: 2 });
    first.end();
    const second = await running(2);
    expect(second.keys).toEqual(["b", "c"]);
    second.end();
    await queue.idle();
    expect(runs).toHaveLength(2);
    expect(loop.inFlight.size).toBe(0);
  });

  it("runs conversations side by side, and knows which turn runs in each", async () => {
    const { loop, runs, running, schedule } = createHarness();
    schedule(event("a", "fake:c1"));
    schedule(event("b", "fake:c2"));
    await running(2);
    expect([loop.runningIn("fake:c1"), loop.runningIn("fake:c2")]).toEqual(["a", "b"]);
    for (const run of runs) run.end();
  });

  it("gives a private command a conversation of its own, which waits for nobody", async () => {
    const { runs, running, schedule } = createHarness();
    schedule(event("a"));
    schedule(call("models", {}, { key: "private", inConversation: true, isPrivate: true }));
    await running(2);
    expect(runs.map(({ keys }) => keys)).toEqual([["a"], ["private"]]);
    for (const run of runs) run.end();
  });

  it("does not run what another process has ended", async () => {
    const { loop, runs, clock } = createHarness();
    const one = event("a");
    loop.inFlight.add(one);
    loop.inFlight.stored("a");
    loop.kick(one);
    await clock.advance(0);
    expect(runs).toEqual([]);
    expect(loop.inFlight.has("a")).toBe(false);
  });

  it("runs again what was left after an outage, before what came later, and more and more rarely", async () => {
    const { runs, running, schedule } = createHarness();
    schedule(call("ask", {}, { key: "a", conversationId: "fake:c1", inConversation: true }));
    schedule(event("b"));
    (await running(1)).leave();
    const begun = runs.length;
    // Doubling from half a second to four.
    for (const [index, aboutMs] of [500, 1000, 2000, 4000, 4000].entries())
      (await running(begun + index + 1, aboutMs)).leave();
    (await running(7, 4000)).end();
    (await running(8)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "a", "a", "a", "a", "a", "a", "b"]);
  });

  it("tries at once again after an outage when people press or write", async () => {
    const { running, schedule } = createHarness();
    schedule(event("a"));
    (await running(1)).leave();
    schedule(event("b"));
    const again = await running(2);
    expect(again.keys).toEqual(["a"]);
    again.end();
    (await running(3)).end();
  });

  it("waits until what it would answer is due, or somebody changes it", async () => {
    const { loop, running, schedule, accept, clock, change } = createHarness();
    schedule(message("b", { key: "b", sentAt: 11 }), { dueAt: clock.now() + 150 });
    accept(message("a", { key: "a", sentAt: 10 }));
    const first = await running(1, 150);
    expect(first.keys).toEqual(["a", "b"]);
    const opened = change("a", { since: 1, again: { kind: "edit" } });
    accept(opened.event, { ...opened, dueAt: clock.now() + 1000 });
    first.fail(toOvertaken());
    await clock.advance(500);
    // A stop does not wait.
    change("a", { end: { kind: "stopped", at: 0, isStored: false } }, "ending");
    accept(opened.event, {
      state: "ending",
      turn: { keys: ["a", "b"], attempt: 1, since: 1, openedAt: 0, address: {} },
    });
    loop.kick(opened.event);
    const second = await running(2);
    expect(second.kind).toBe("end");
    second.end();
  });

  it("answers what came during the read of the inbox with what another process accepted meanwhile", async () => {
    let during = (): void => undefined;
    const whileRead = (): Promise<void> => Promise.resolve(during());
    const { runs, running, schedule, accept } = createHarness({ whileRead });
    during = () => {
      during = () => undefined;
      accept(message("b", { key: "b", sentAt: 1_800_000_000_000 }));
      schedule(message("c", { key: "c", sentAt: 1_800_000_000_001 }));
    };
    schedule(event("a"));
    for (const count of [1, 2]) (await running(count)).end();
    expect(runs.map(({ keys }) => keys.join("+"))).toEqual(["a", "b+c"]);
  });

  it("says once a minute that turns cannot begin during an outage of the store, however many there are", async () => {
    const lines: { level: string; message: string; fields: Readonly<Record<string, unknown>> }[] = [];
    const note = (level: string) => (fields: Readonly<Record<string, unknown>>, text: string) =>
      void lines.push({ level, message: text, fields });
    const log: Log = { ...silentLog, warn: note("warn"), error: note("error") };
    let failure: Error | undefined = new ParleyError("store-unavailable", "the store does not respond");
    const { clock, running, schedule } = createHarness({ log, storeError: () => failure });
    for (const id of ["a", "b", "c"]) schedule(event(id, `fake:${id}`));
    await clock.advance(65_000);
    const text = "turns not begun; they stay open until the store responds";
    expect(lines).toMatchObject([
      { level: "warn", message: text, fields: { count: 1 } },
      { level: "warn", message: text },
    ]);
    failure = new Error("something else");
    await clock.advance(4000);
    expect(lines.at(-1)).toMatchObject({ level: "error", message: "turn not begun; it stays open" });
    failure = undefined;
    await clock.advance(4000);
    for (const run of [await running(3)]) run.end();
  });
});

describe("a running turn", () => {
  it("ends where a person has stopped it, and is left where it was opened again", async () => {
    const { loop, running, schedule, change } = createHarness();
    schedule(event("a"));
    const first = await running(1);
    const end = { kind: "stopped", by: "Ada", at: 0, isStored: false } as const;
    loop.noticed("a", change("a", { end }, "ending"));
    expect(first.active.signal.reason).toMatchObject({
      code: "cancelled",
      detail: { because: "stopped", by: "Ada" },
    });
    first.end();
    schedule(event("b"));
    const second = await running(2);
    loop.noticed("b", change("b", { since: 1 }));
    expect(second.active.signal.reason).toMatchObject({ code: "stopping" });
    second.fail(toOvertaken());
    // It runs again at once, and this is no outage.
    (await running(3)).end();
  });

  it("is looked up where it is not known whether its change was stored", async () => {
    const { loop, running, schedule, change, clock } = createHarness();
    schedule(event("a"));
    const run = await running(1);
    loop.noticed("a", undefined);
    await clock.advance(0);
    expect(run.active.signal.aborted).toBe(false);
    change("a", { end: { kind: "withdrawn", at: 0, isStored: false } }, "ending");
    loop.noticed("a", undefined);
    await clock.advance(0);
    expect(run.active.signal.reason).toMatchObject({ detail: { because: "deleted" } });
    run.end();
  });

  it("learns within a second of what another process has changed, where there are others", async () => {
    const queue = { ...createLocalQueue(), isShared: true };
    const { running, schedule, change, clock } = createHarness({ queue });
    schedule(event("a"));
    const run = await running(1);
    change("a", { end: { kind: "stopped", at: 0, isStored: false } }, "ending");
    await clock.advance(700);
    expect(run.active.signal.reason).toMatchObject({ detail: { because: "stopped" } });
    run.end();
  });

  it("goes on where the store has lost its data", async () => {
    const queue = { ...createLocalQueue(), isShared: true };
    const { loop, running, schedule, clock } = createHarness({ queue });
    schedule(event("a"));
    const run = await running(1);
    loop.noticed("b", undefined);
    await clock.advance(1400);
    expect(run.active.signal.aborted).toBe(false);
    run.end();
  });
});

describe("a round", () => {
  it("begins what others left, and leaves what they hold", async () => {
    const held = new Set(["fake:held"]);
    const local = createLocalQueue();
    const queue: ConversationQueue = {
      ...local,
      runUnlessTaken: (id, work) => (held.has(id) ? Promise.resolve(false) : local.runUnlessTaken(id, work)),
    };
    const { loop, running, accept, runs } = createHarness({ queue });
    accept(event("a", "fake:held"));
    accept(event("b", "fake:free"));
    expect(await loop.round("fake")).toBe(2);
    (await running(1)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["b"]);
    held.clear();
    await loop.round("fake");
    (await running(2)).end();
    expect(await loop.round("another platform")).toBe(0);
  });
});

describe("a stop of the loop", () => {
  it("is done at once when nothing runs, and begins nothing more", async () => {
    const { loop, runs, schedule, clock } = createHarness();
    expect(await loop.stop({ deadlineMs: 60_000 })).toBe(0);
    expect(loop.isStopping()).toBe(true);
    schedule(event("late"));
    await clock.advance(10_000);
    expect(runs).toEqual([]);
  });

  it("abandons what still runs at the deadline, and leaves what waits", async () => {
    const { loop, running, schedule, clock, runs } = createHarness();
    schedule(event("a"));
    const run = await running(1);
    schedule(event("b"));
    run.active.signal.addEventListener("abort", run.leave);
    const stopped = loop.stop({ deadlineMs: 9000 });
    await clock.advance(8999);
    expect(run.active.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(run.active.signal.reason).toMatchObject({ code: "stopping" });
    expect(await stopped).toBe(1);
    await clock.advance(60_000);
    expect(runs).toHaveLength(1);
  });

  it("ends a wait for what is due", async () => {
    const { loop, schedule, clock, runs } = createHarness();
    schedule(event("a"), { dueAt: clock.now() + 5000 });
    await clock.advance(10);
    const stopped = loop.stop({ deadlineMs: 60_000 });
    await clock.advance(0);
    expect(await stopped).toBe(0);
    expect(runs).toEqual([]);
  });
});

describe("the events in flight", () => {
  it("are counted by person, and asked for by conversation, until a look does not find them", () => {
    const inFlight = createInFlightEvents();
    const [a, b] = [event("a"), event("b")];
    inFlight.add(a);
    inFlight.add(b);
    inFlight.add(b);
    expect(inFlight.size).toBe(2);
    expect(inFlight.countOf(a.author.id)).toBe(2);
    expect(inFlight.askedAt("fake:c1", a.author.id)).toBe(a.sentAt);
    inFlight.delete("b");
    expect(inFlight.countOf(a.author.id)).toBe(1);
    inFlight.stored("a");
    inFlight.keepOnly("fake:c1", [], inFlight.mark());
    expect(inFlight.size).toBe(0);
  });

  it("stay where a look at the store began before they were stored", () => {
    const inFlight = createInFlightEvents();
    const mark = inFlight.mark();
    inFlight.add(event("a"));
    inFlight.keepOnly("fake:c1", [], mark);
    inFlight.stored("a");
    inFlight.keepOnly("fake:c1", [], mark);
    expect(inFlight.has("a")).toBe(true);
    inFlight.keepOnly(storedIn(event("a")), [event("a"), event("c")], inFlight.mark());
    expect([inFlight.has("a"), inFlight.has("c")]).toEqual([true, true]);
  });
});
