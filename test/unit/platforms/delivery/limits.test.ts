import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ParleyError } from "../../../../src/core/errors.ts";
import { createLimits, type DeliveryCall } from "../../../../src/platforms/delivery/limits.ts";

describe("the limits of a platform", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const minute = 60_000;
  const tooMany = (retryAfterMs: number, lane?: string) =>
    new ParleyError("platform-unreachable", "rate limited", {
      retryAfterMs,
      ...(lane === undefined ? {} : { detail: { lane } }),
    });

  /** Makes limits whose lane `edits` takes `perWindow` calls a minute. Other lanes have no limit. */
  function setUp(perWindow = 10) {
    const sent: string[] = [];
    const waited: { urgency: string; seconds: number }[] = [];
    const limited: string[] = [];
    const limits = createLimits({
      platform: "fake",
      limitOf: (lane) => (lane.startsWith("edits") ? { perWindow, windowMs: minute } : undefined),
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
      limits.send(toCall(more), () => {
        sent.push(name);
        return work();
      });
    return { limits, sent, waited, limited, send, toCall };
  }

  const settle = () => vi.advanceTimersByTimeAsync(0);

  async function fill(send: ReturnType<typeof setUp>["send"], count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) await send("filler");
  }

  describe("createLimits", () => {
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

    it("sends final texts first, then first words, then growth, and the older first", async () => {
      const { send, sent } = setUp(3);
      await fill(send, 3);
      const all = [
        send("growth 1", { urgency: "growth" }),
        send("first 1", { urgency: "first" }),
        send("growth 2", { urgency: "growth" }),
        send("final 1"),
        send("first 2", { urgency: "first" }),
        send("final 2"),
      ];
      await vi.advanceTimersByTimeAsync(6 * minute);
      await Promise.all(all);
      expect(sent.slice(3)).toEqual(["final 1", "final 2", "first 1", "first 2", "growth 1", "growth 2"]);
    });

    it.each([
      ["a minute", minute, 6],
      ["five seconds", 5000, 8],
    ])("leaves room for what is more urgent in a window of %s", async (_, windowMs, share) => {
      const limits = createLimits({ platform: "fake", limitOf: () => ({ perWindow: 10, windowMs }) });
      const sent: string[] = [];
      const send = (urgency: DeliveryCall["urgency"]) =>
        limits.send({ lanes: ["edits"], urgency, method: "edit", deadline: Infinity }, async () => {
          sent.push(urgency);
        });
      const growth = Array.from({ length: 10 }, () => send("growth"));
      await settle();
      expect(sent).toHaveLength(share);
      expect(limits.waitMs(["edits"], "final")).toBe(0);
      await Promise.all(Array.from({ length: 10 - share }, () => send("first")));
      expect(limits.waitMs(["edits"], "first")).toBeGreaterThan(0);
      await vi.advanceTimersByTimeAsync(3 * minute);
      await Promise.all(growth);
    });

    it("is not held up by a call that waits for another lane", async () => {
      const { send, sent } = setUp(1);
      await send("a", { lanes: ["edits 1", "all"] });
      const waiting = send("b", { lanes: ["edits 1", "all"] });
      await send("c", { lanes: ["edits 2", "all"], urgency: "growth" });
      expect(sent).toEqual(["a", "c"]);
      await vi.advanceTimersByTimeAsync(minute);
      await waiting;
    });

    it("closes the lane of a refused call for the time that the platform says", async () => {
      const { send, sent, limited, limits } = setUp();
      await expect(send("a", {}, () => Promise.reject(tooMany(5000)))).rejects.toThrow("rate limited");
      expect(limited).toEqual(["edit"]);
      expect(limits.waitMs(["edits"], "final")).toBe(5000);
      const all = [send("first", { urgency: "first" }), send("final")];
      await vi.advanceTimersByTimeAsync(4999);
      expect(sent).toEqual(["a"]);
      await vi.advanceTimersByTimeAsync(1);
      expect(sent).toEqual(["a", "final"]);
      // What is not final stays out twice as long.
      await vi.advanceTimersByTimeAsync(4999);
      expect(sent).toEqual(["a", "final"]);
      await vi.advanceTimersByTimeAsync(1);
      await Promise.all(all);
      expect(sent).toEqual(["a", "final", "first"]);
    });

    it("closes the lane that the error names", async () => {
      const { send, limits } = setUp();
      const refused = send("a", { lanes: ["edits", "all"] }, () => Promise.reject(tooMany(5000, "all")));
      await expect(refused).rejects.toThrow("rate limited");
      expect(limits.waitMs(["edits"], "final")).toBe(0);
      expect(limits.waitMs(["all"], "final")).toBe(5000);
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
      const preview = send("c", { urgency: "growth", deadline: performance.now() + minute + 10 });
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

    it("spreads what grows over the replies, and in a minute faster while there is room", async () => {
      const of = (windowMs: number) =>
        createLimits({ platform: "fake", limitOf: () => ({ perWindow: 50, windowMs }) });
      const short = of(5000);
      expect(short.intervalMs("edits")).toBe(0);
      const leave = Array.from({ length: 8 }, () => short.join("edits"));
      expect(short.intervalMs("edits")).toBe(1000);
      leave[0]?.();
      leave[0]?.();
      expect(short.intervalMs("edits")).toBe(875);
      const long = of(minute);
      for (let count = 0; count < 6; count += 1) long.join("edits");
      expect(long.intervalMs("edits")).toBe(0);
      const send = () =>
        long.send(
          { lanes: ["edits"], urgency: "growth", method: "edit", deadline: Infinity },
          async () => {},
        );
      for (let count = 0; count < 15; count += 1) await send();
      expect(long.intervalMs("edits")).toBe(12_000);
      for (let count = 0; count < 15; count += 1) await send();
      expect(long.intervalMs("edits")).toBe(24_000);
    });

    it("takes a call that a call makes", async () => {
      const { send, sent } = setUp(3);
      const inner: Promise<void>[] = [];
      await send("a", {}, async () => void inner.push(send("b")));
      await Promise.all(inner);
      expect(sent).toEqual(["a", "b"]);
    });

    it("is full with as many waiting calls as it may hold, and says what waits", async () => {
      const { limits, send } = setUp(1);
      await send("a");
      const all = [1, 2, 3].map((index) => send(`${index}`));
      all.push(send("p", { urgency: "growth" }));
      await settle();
      expect(limits.isFull()).toBe(false);
      all.push(send("q", { urgency: "growth" }));
      expect(limits.isFull()).toBe(true);
      expect(limits.waiting()).toEqual([
        { method: "edit", urgency: "final", count: 3 },
        { method: "edit", urgency: "growth", count: 2 },
      ]);
      await vi.advanceTimersByTimeAsync(10 * minute);
      await Promise.all(all);
      expect(limits.waiting()).toEqual([]);
    });

    it("estimates how long a call would wait behind those that are more urgent", async () => {
      const { limits, send } = setUp(2);
      await send("a");
      await vi.advanceTimersByTimeAsync(20_000);
      await send("b");
      expect(limits.waitMs(["edits"], "final")).toBe(40_000);
      const waiting = send("c");
      expect(limits.waitMs(["edits"], "final")).toBe(minute);
      await vi.advanceTimersByTimeAsync(10 * minute);
      await waiting;
    });

    it("forgets quiet lanes, and no others", async () => {
      const asked: string[] = [];
      const limits = createLimits({
        platform: "fake",
        limitOf(lane) {
          asked.push(lane);
          return { perWindow: 5, windowMs: 5000 };
        },
      });
      const use = (lane: string) =>
        limits.send({ lanes: [lane], urgency: "final", method: "edit", deadline: Infinity }, () =>
          Promise.resolve(),
        );
      await use("quiet");
      limits.join("live");
      await vi.advanceTimersByTimeAsync(minute);
      for (let index = 0; index < 3000; index += 1) await use(`channel ${index}`);
      await use("quiet");
      await use("live");
      expect(asked.filter((lane) => lane === "quiet")).toHaveLength(2);
      expect(asked.filter((lane) => lane === "live")).toHaveLength(1);
    });
  });
});
