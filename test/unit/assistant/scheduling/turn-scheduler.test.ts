import { describe, expect, it } from "vitest";
import type { ActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { keysOf, type PendingTurn } from "../../../../src/assistant/scheduling/pending-turn.ts";
import {
  createTurnScheduler,
  type TurnScheduler,
} from "../../../../src/assistant/scheduling/turn-scheduler.ts";
import { createLocalQueue } from "../../../../src/conversations/local-queue.ts";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import { call, message, silentLog } from "../../../support/fakes.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

const turn = (key: string, conversationId = "fake:c1"): PendingTurn => ({
  event: message(key, { key, conversationId }),
  progress: undefined,
  others: [],
});

function createHarness(closed: ReadonlySet<string> = new Set()) {
  const runs: { keys: string[]; active: ActiveTurn; end: () => void; leave: () => void }[] = [];
  const queue = createLocalQueue();
  const clock = createManualClock(0);
  const accepted = new Map<string, IncomingEvent>();
  const answered = new Set(closed);
  const created = createTurnScheduler({
    inbox: {
      isOpen: (key) => Promise.resolve(!answered.has(key)),
      listOpenIn: (conversationId) =>
        Promise.resolve(
          [...accepted.values()]
            .filter((event) => event.conversationId === conversationId && !answered.has(event.key))
            .map((event) => ({ event, acceptedAt: 0 })),
        ),
    },
    queue,
    log: silentLog,
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
  /** The newest of so many runs, which begins in so many milliseconds and not before. */
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

  it.each([
    ["waits a moment where another process may be accepting an earlier message", "always", 10, 150],
    ["waits longer where its acceptance took longer than that of others", "always", 145, 540],
    ["does not wait on a platform that delivers in order", "when-slow", 400, 0],
    ["waits on a platform that delivers in order where its own acceptance was slow", "when-slow", 1010, 1500],
  ] as const)("%s, and answers that first", async (_, mayBeLater, tookMs, waitsMs) => {
    const { scheduler, runs, running, clock, acceptElsewhere } = createHarness();
    const scheduleSent = (key: string, agoMs: number, conversationId: string): void => {
      const event = message(key, { key, sentAt: clock.now() - agoMs, conversationId });
      scheduler.schedule({ event, progress: undefined, others: [] }, { mayBeLater });
    };
    scheduleSent("quick", 10, "fake:c2");
    (await running(1, mayBeLater === "always" ? 150 : 0)).end();
    scheduleSent("b", tookMs, "fake:c1");
    acceptElsewhere(message("a", { key: "a", sentAt: clock.now() - tookMs - 1 }));
    (await running(2, waitsMs)).end();
    (await running(3)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["quick", "a", "b"]);
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
