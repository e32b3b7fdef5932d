import { systemClock } from "../../../../src/support/clock.ts";
import { describe, expect, it } from "vitest";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import {
  createTurnScheduler,
  type TurnScheduler,
} from "../../../../src/assistant/scheduling/turn-scheduler.ts";
import { keysOf, type PendingTurn } from "../../../../src/assistant/scheduling/pending-turn.ts";
import type { ActiveTurn } from "../../../../src/assistant/scheduling/active-turn.ts";
import { createLocalQueue } from "../../../../src/conversations/local-queue.ts";
import { sleep } from "../../../../src/support/sleep.ts";
import { call, message, silentLog } from "../../../support/fakes.ts";

const turn = (key: string, conversationId = "fake:c1"): PendingTurn => ({
  event: message(key, { key, conversationId }),
  progress: undefined,
  others: [],
});

function createHarness(closed: ReadonlySet<string> = new Set()) {
  const runs: { keys: string[]; active: ActiveTurn; end: () => void; leave: () => void }[] = [];
  const queue = createLocalQueue();
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
    clock: { ...systemClock, now: () => 0 },
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
  const running = async (count: number) => {
    await expect.poll(() => runs.length).toBe(count);
    return runs.at(-1)!;
  };
  const acceptElsewhere = (event: IncomingEvent): void => void accepted.set(event.key, event);
  return { scheduler, runs, running, queue, acceptElsewhere };
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
    const startedAt = performance.now();
    for (let count = 1; count <= 4; count++) (await running(count)).leave();
    (await running(5)).end();
    expect(performance.now() - startedAt).toBeGreaterThan(50 + 100 + 200 + 400);
    (await running(6)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "a", "a", "a", "a", "b"]);
  });

  it("waits a moment where another process may be accepting an earlier message, and answers that first", async () => {
    const { scheduler, runs, running, acceptElsewhere } = createHarness();
    const later = message("b", { key: "b", sentAt: 2 });
    scheduler.schedule({ event: later, progress: undefined, others: [] }, { mayBeLater: "always" });
    acceptElsewhere(message("a", { key: "a", sentAt: 1 }));
    for (const count of [1, 2]) (await running(count)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["a", "b"]);
  });

  it("waits longer where its acceptance took longer than that of others", async () => {
    const { scheduler, runs, running, acceptElsewhere } = createHarness();
    const quick = message("quick", { key: "quick", sentAt: 0, conversationId: "fake:c2" });
    scheduler.schedule({ event: quick, progress: undefined, others: [] }, { mayBeLater: "always" });
    (await running(1)).end();
    const slow = message("b", { key: "b", sentAt: -135 });
    scheduler.schedule({ event: slow, progress: undefined, others: [] }, { mayBeLater: "always" });
    await sleep(300);
    expect(runs).toHaveLength(1);
    acceptElsewhere(message("a", { key: "a", sentAt: -136 }));
    for (const count of [2, 3]) (await running(count)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["quick", "a", "b"]);
  });

  it("waits for earlier messages of a platform that delivers in order where its own acceptance was slow", async () => {
    const { scheduler, runs, running, acceptElsewhere } = createHarness();
    const quick = message("quick", { key: "quick", sentAt: 0, conversationId: "fake:c2" });
    scheduler.schedule({ event: quick, progress: undefined, others: [] }, { mayBeLater: "when-slow" });
    (await running(1)).end();
    const slow = message("b", { key: "b", sentAt: -1000 });
    scheduler.schedule({ event: slow, progress: undefined, others: [] }, { mayBeLater: "when-slow" });
    await sleep(200);
    expect(runs).toHaveLength(1);
    acceptElsewhere(message("a", { key: "a", sentAt: -1001 }));
    for (const count of [2, 3]) (await running(count)).end();
    expect(runs.map(({ keys }) => keys.join())).toEqual(["quick", "a", "b"]);
  });

  it("stops at once when nothing runs, and starts nothing more", async () => {
    const { scheduler, runs } = createHarness();
    expect(await scheduler.stop({ deadlineMs: 60_000 })).toBe(0);
    scheduler.schedule(turn("late"));
    await expect.poll(() => scheduler.inFlight.size).toBe(0);
    expect(runs).toEqual([]);
  });

  it("abandons what still runs at the deadline, and drops what waits", async () => {
    const { scheduler, running } = createHarness();
    scheduler.schedule(turn("a"));
    const run = await running(1);
    scheduler.schedule(turn("b"));
    run.active.signal.addEventListener("abort", run.end);
    expect(await scheduler.stop({ deadlineMs: 1 })).toBe(1);
    expect(run.active.signal.reason).toMatchObject({ code: "stopping" });
    await expect.poll(() => scheduler.inFlight.size).toBe(0);
  });
});
