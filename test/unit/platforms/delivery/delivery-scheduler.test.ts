import { afterEach, beforeEach, describe, expect, it, test, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import {
  createDeliveryScheduler,
  type DeliveryCall,
} from "../../../../src/platforms/delivery/delivery-scheduler.ts";
import { createRefusalSchedule } from "../../../../src/platforms/delivery/receive-patiently.ts";

describe("the delivery scheduler", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const minute = 60_000;
  const tooMany = (retryAfterMs: number, lane?: string) =>
    new ParleyError("platform-unreachable", "rate limited", {
      retryAfterMs,
      ...(lane === undefined ? {} : { detail: { lane } }),
    });

  /** Makes a scheduler whose lane `edits` takes `perWindow` calls a minute. Other lanes have no limit. */
  function setUp(perWindow = 10, isMinimum = false) {
    const sent: string[] = [];
    const waited: { urgency: string; seconds: number }[] = [];
    const limited: string[] = [];
    const scheduler = createDeliveryScheduler({
      platform: "fake",
      limitOf: (lane) => (lane.startsWith("edits") ? { perWindow, windowMs: minute, isMinimum } : undefined),
      maxWaiting: 5,
      meter(event) {
        if (event.kind === "delivered") waited.push({ urgency: event.urgency, seconds: event.seconds });
        if (event.kind === "limited") limited.push(event.method);
      },
    });
    const toCall = (more: Partial<DeliveryCall> = {}): DeliveryCall => ({
      lanes: ["edits"],
      urgency: "final",
      method: "edit",
      deadline: performance.now() + 10 * minute,
      ...more,
    });
    const send = (name: string, more: Partial<DeliveryCall> = {}, work = () => Promise.resolve()) =>
      scheduler.send(toCall(more), () => {
        sent.push(name);
        return work();
      });
    return { scheduler, sent, waited, limited, send, toCall };
  }

  const settle = () => vi.advanceTimersByTimeAsync(0);

  async function fill(send: ReturnType<typeof setUp>["send"], count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await send("filler");
  }

  describe("createDeliveryScheduler", () => {
    it("sends at once while there is room, within the call that asks", () => {
      const { send, sent, waited } = setUp();
      void send("a");
      expect(sent).toEqual(["a"]);
      expect(waited).toEqual([]);
    });

    it("sends no more in a window than its limit, and says how long a call waited", async () => {
      const { send, sent, waited } = setUp(3);
      const all = [1, 2, 3, 4].map((index) => send(`${index}`));
      await vi.advanceTimersByTimeAsync(minute - 1);
      expect(sent).toEqual(["1", "2", "3"]);
      await vi.advanceTimersByTimeAsync(2);
      await Promise.all(all);
      expect(sent).toEqual(["1", "2", "3", "4"]);
      expect(waited).toEqual([{ urgency: "final", seconds: 60 }]);
    });

    it("sends final texts before previews, and the older first", async () => {
      const { send, sent } = setUp(3);
      await fill(send, 3);
      const all = [
        send("preview 1", { urgency: "preview" }),
        send("preview 2", { urgency: "preview" }),
        send("final 1"),
        send("final 2"),
      ];
      await vi.advanceTimersByTimeAsync(4 * minute);
      await Promise.all(all);
      expect(sent.slice(3)).toEqual(["final 1", "final 2", "preview 1", "preview 2"]);
    });

    it("leaves room for what is more urgent", async () => {
      const { send, sent, scheduler } = setUp(10);
      const previews = Array.from({ length: 10 }, () => send("preview", { urgency: "preview" }));
      await settle();
      expect(sent).toHaveLength(7);
      expect(scheduler.waitMs(["edits"], "final")).toBe(0);
      await send("final");
      expect(sent.at(-1)).toBe("final");
      await vi.advanceTimersByTimeAsync(3 * minute);
      await Promise.all(previews);
    });

    it("is not held up by a call that waits for another lane", async () => {
      const { send, sent } = setUp(1);
      await send("a", { lanes: ["edits 1", "all"] });
      const waiting = send("b", { lanes: ["edits 1", "all"] });
      await send("c", { lanes: ["edits 2", "all"], urgency: "preview" });
      expect(sent).toEqual(["a", "c"]);
      await vi.advanceTimersByTimeAsync(minute);
      await waiting;
    });

    it("closes the lane of a refused call for the time that the platform says", async () => {
      const { send, sent, limited, scheduler } = setUp();
      await expect(send("a", {}, () => Promise.reject(tooMany(5000)))).rejects.toThrow("rate limited");
      expect(limited).toEqual(["edit"]);
      expect(scheduler.waitMs(["edits"], "final")).toBe(5000);
      const later = send("b");
      await vi.advanceTimersByTimeAsync(4999);
      expect(sent).toEqual(["a"]);
      await vi.advanceTimersByTimeAsync(1);
      await later;
      expect(sent).toEqual(["a", "b"]);
    });

    it("closes the lane that the error names", async () => {
      const { send, scheduler } = setUp();
      const refused = send("a", { lanes: ["edits", "all"] }, () => Promise.reject(tooMany(5000, "all")));
      await expect(refused).rejects.toThrow("rate limited");
      expect(scheduler.waitMs(["edits"], "final")).toBe(0);
      expect(scheduler.waitMs(["all"], "final")).toBe(5000);
    });

    it("sends as much after a refusal as before, and does not count the refused call", async () => {
      const { send, sent } = setUp(10);
      await fill(send, 5);
      await expect(send("refused", {}, () => Promise.reject(tooMany(1000)))).rejects.toThrow("rate limited");
      await vi.advanceTimersByTimeAsync(1000);
      const from = sent.length;
      const all = Array.from({ length: 6 }, () => send("again"));
      await settle();
      expect(sent.length - from).toBe(5);
      await vi.advanceTimersByTimeAsync(minute);
      await Promise.all(all);
    });

    it("does not wait past a deadline", async () => {
      const { send, sent } = setUp(1);
      await send("a");
      await expect(send("b", { deadline: performance.now() + 1000 })).rejects.toMatchObject({
        code: "platform-unreachable",
        retryAfterMs: minute,
      });
      // More urgent calls take its place.
      const preview = send("c", { urgency: "preview", deadline: performance.now() + minute + 10 });
      const outcome = expect(preview).rejects.toMatchObject({ code: "platform-unreachable" });
      const finals = [send("d"), send("e")];
      await vi.advanceTimersByTimeAsync(3 * minute);
      await Promise.all([...finals, outcome]);
      expect(sent).toEqual(["a", "d", "e"]);
    });

    it("sends nothing of a caller that has given up", async () => {
      const { send, sent } = setUp(1);
      await send("a");
      const controller = new AbortController();
      const waiting = send("b", { signal: controller.signal });
      const outcome = expect(waiting).rejects.toThrow("gone");
      controller.abort(new Error("gone"));
      await outcome;
      await vi.advanceTimersByTimeAsync(2 * minute);
      expect(sent).toEqual(["a"]);
      await expect(send("c", { signal: controller.signal })).rejects.toThrow("gone");
    });

    it("keeps reserved room free from everyone else", async () => {
      const { scheduler, send, sent } = setUp(3);
      const reservation = scheduler.reserve("edits");
      expect(reservation).toBeDefined();
      const others = [1, 2, 3].map((index) => send(`${index}`));
      await settle();
      expect(sent).toEqual(["1", "2"]);
      await send("reserved", { reservation });
      expect(sent).toEqual(["1", "2", "reserved"]);
      await vi.advanceTimersByTimeAsync(minute);
      await Promise.all(others);
    });

    it("gives reserved room back once", async () => {
      const { scheduler, send, sent } = setUp(3);
      const all = [1, 2, 3].map(() => scheduler.reserve("edits"));
      expect(scheduler.reserve("edits")).toBeUndefined();
      all[0]?.release();
      all[0]?.release();
      expect(scheduler.reserve("edits")).toBeDefined();
      expect(scheduler.reserve("edits")).toBeUndefined();
      for (const one of all) one?.release();
      await send("a");
      expect(sent).toEqual(["a"]);
    });

    it("counts a call until a window after its answer: the platform may have counted it late", async () => {
      const { send, sent } = setUp(1);
      const held = Promise.withResolvers<void>();
      const slow = send("a", {}, () => held.promise);
      const next = send("b");
      await vi.advanceTimersByTimeAsync(2 * minute);
      expect(sent).toEqual(["a"]);
      held.resolve();
      await slow;
      await vi.advanceTimersByTimeAsync(minute - 1);
      expect(sent).toEqual(["a"]);
      await vi.advanceTimersByTimeAsync(1);
      await next;
    });

    it("makes previews of many live replies rarer, and leaves them out at last", () => {
      const { scheduler } = setUp(50);
      expect(scheduler.previewIntervalMs("edits")).toBe(0);
      const leave = Array.from({ length: 7 }, () => scheduler.join("edits"));
      expect(scheduler.previewIntervalMs("edits")).toBe(12_000);
      const more = scheduler.join("edits");
      scheduler.join("edits");
      expect(scheduler.previewIntervalMs("edits")).toBe(Infinity);
      more();
      more();
      leave[0]?.();
      expect(scheduler.previewIntervalMs("edits")).toBe(12_000);
      expect(scheduler.previewIntervalMs("open")).toBe(0);
    });

    it("is full with as many waiting calls as it may hold, and says what waits", async () => {
      const { scheduler, send } = setUp(1);
      await send("a");
      const all = [1, 2, 3].map((index) => send(`${index}`));
      all.push(send("p", { urgency: "preview" }));
      await settle();
      expect(scheduler.isFull()).toBe(false);
      all.push(send("q", { urgency: "preview" }));
      expect(scheduler.isFull()).toBe(true);
      expect(scheduler.waiting()).toEqual([
        { method: "edit", urgency: "final", count: 3 },
        { method: "edit", urgency: "preview", count: 2 },
      ]);
      await vi.advanceTimersByTimeAsync(10 * minute);
      await Promise.all(all);
      expect(scheduler.waiting()).toEqual([]);
    });

    it("estimates how long a call would wait behind those that are more urgent", async () => {
      const { scheduler, send } = setUp(2);
      await send("a");
      await vi.advanceTimersByTimeAsync(20_000);
      await send("b");
      expect(scheduler.waitMs(["edits"], "final")).toBe(40_000);
      const waiting = send("c");
      expect(scheduler.waitMs(["edits"], "final")).toBe(minute);
      await vi.advanceTimersByTimeAsync(10 * minute);
      await waiting;
    });

    it("forgets quiet lanes, and no others", async () => {
      const asked: string[] = [];
      const scheduler = createDeliveryScheduler({
        platform: "fake",
        limitOf(lane) {
          asked.push(lane);
          return { perWindow: 5, windowMs: 5000 };
        },
      });
      const use = (lane: string) =>
        scheduler.send({ lanes: [lane], urgency: "final", method: "edit", deadline: Infinity }, () =>
          Promise.resolve(),
        );
      await use("quiet");
      scheduler.join("live");
      await vi.advanceTimersByTimeAsync(minute);
      for (let index = 0; index < 3000; index += 1) await use(`channel ${index}`);
      await use("quiet");
      await use("live");
      expect(asked.filter((lane) => lane === "quiet")).toHaveLength(2);
      expect(asked.filter((lane) => lane === "live")).toHaveLength(1);
    });
  });

  describe("a lane that takes at least so many calls", () => {
    it("lets all but previews through until the platform refuses one, and room is kept of the minimum", async () => {
      const { send, scheduler } = setUp(10, true);
      await fill(send, 30);
      expect(scheduler.waitMs(["edits"], "final")).toBe(0);
      expect(scheduler.waitMs(["edits"], "preview")).toBeGreaterThan(0);
      expect(scheduler.reserve("edits")).toBeUndefined();
    });

    it("sends final calls above the minimum one after another, so that a refusal is one", async () => {
      const { send, sent, limited, scheduler } = setUp(10, true);
      await fill(send, 10);
      await expect(send("refused", {}, () => Promise.reject(tooMany(1000)))).rejects.toThrow("rate limited");
      expect(scheduler.waitMs(["edits"], "final")).toBe(1000);
      const from = sent.length;
      const answers: (() => void)[] = [];
      const work = () => new Promise<void>((resolve) => answers.push(resolve));
      const all = ["a", "b", "c"].map((name) => send(name, {}, work));
      await vi.advanceTimersByTimeAsync(1000);
      for (const name of ["a", "b", "c"]) {
        expect(sent.slice(from).at(-1)).toBe(name);
        await vi.advanceTimersByTimeAsync(5000);
        expect(sent.slice(from).at(-1)).toBe(name);
        answers.shift()?.();
        await settle();
      }
      await Promise.all(all);
      expect(limited).toEqual(["edit"]);
    });
  });
});

describe("when refusals are repeated", () => {
  const denied = new ParleyError("access-denied", "refused");
  const overRate = (retryAfterMs: number) => new ParleyError("rate-limited", "refused", { retryAfterMs });

  test("a refusal by the rules is told again after its interval, to each person and for each reason", () => {
    let now = 1000;
    const schedule = createRefusalSchedule(() => now);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(false);
    expect(schedule.isDue(denied, "bo", 600_000)).toBe(true);
    expect(schedule.isDue(overRate(40_000), "ana", 600_000)).toBe(true);
    now += 599_999;
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(false);
    now += 1;
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
  });

  test("what could not be told is due again", () => {
    const schedule = createRefusalSchedule(() => 0);
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
    schedule.untold(denied, "ana");
    expect(schedule.isDue(denied, "ana", 600_000)).toBe(true);
  });

  test.each([
    ["when it is free again", 40_000, 40_000],
    ["after 30 seconds at the earliest", 100, 30_000],
    ["after ten minutes at the latest", 24 * 3_600_000, 600_000],
  ])("a person over a limit is told again %s", (_when, retryAfterMs, expectedMs) => {
    let now = 1000;
    const schedule = createRefusalSchedule(() => now);
    const isTold = () => schedule.isDue(overRate(retryAfterMs), "ana", 1);
    expect(isTold()).toBe(true);
    now += expectedMs - 1;
    expect(isTold()).toBe(false);
    now += 1;
    expect(isTold()).toBe(true);
  });
});
