import { beforeEach, expect, test } from "vitest";
import type { IncomingEvent } from "../../../../src/core/events.ts";
import type { Receiver } from "../../../../src/core/platform.ts";
import type { Meter } from "../../../../src/core/telemetry.ts";
import { createLoadHistory } from "../../../../src/operations/dashboard/load-history.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

const passed: string[] = [];
const meter: Meter = {
  turn: () => void passed.push("turn"),
  firstText: () => void passed.push("firstText"),
  delivery: () => void passed.push("delivery"),
  platformLimited: () => void passed.push("platformLimited"),
  call: () => void passed.push("call"),
  rated: () => void passed.push("rated"),
  refused: () => void passed.push("refused"),
};
const isConnected = { slack: false };
let running = 0;
let clock = createManualClock();
const open = () =>
  createLoadHistory({
    load: () => ({ turns: { running, waiting: 1 }, gatewayCalls: { running: 2, waiting: 3 } }),
    deliveryWaiting: () => 4,
    isConnected: () => isConnected,
    clock,
  });

beforeEach(() => {
  clock = createManualClock(Date.UTC(2026, 0, 1));
  passed.length = 0;
  isConnected.slack = false;
});

test("samples what runs every 10 s, for an hour, and shows the present", async () => {
  const history = open();
  running = 5;
  await clock.advance(20_000);
  running = 7;
  const { times, turnsRunning, callsWaiting, deliveryWaiting } = history.series();
  expect(turnsRunning).toEqual([5, 5, 7]);
  expect(times.map((time) => time - times[0]!)).toEqual([0, 10, 10]);
  expect([callsWaiting[0], deliveryWaiting[0]]).toEqual([3, 4]);
  await clock.advance(3 * 3_600_000);
  expect(history.series().times).toHaveLength(361);
  history.close();
  expect(clock.waiting()).toBe(0);
});

test("sums up each minute, and passes every figure on", async () => {
  const history = open();
  const counted = history.countInto(meter);
  for (let seconds = 1; seconds <= 100; seconds++)
    counted.turn({ platform: "slack", kind: "message", outcome: "complete" }, seconds);
  counted.turn({ platform: "slack", kind: "message", outcome: "failed" }, 1);
  counted.firstText({ platform: "slack" }, 0.5);
  counted.refused({ platform: "slack", code: "busy" });
  counted.platformLimited({ platform: "slack", method: "chat.update" });
  counted.call({ operation: "chat", outcome: "ok", model: "m" }, { isEstimated: false });
  await clock.advance(60_000);
  counted.refused({ platform: "slack", code: "busy" });
  const [first, second] = history.minutes();
  expect(first).toMatchObject({
    turns: 101,
    failed: 1,
    refused: 1,
    turnP50: 50,
    turnP95: 95,
    firstTextP50: 0.5,
  });
  expect(second).toMatchObject({ turns: 0, turnP50: null, firstTextP95: null, refused: 1 });
  expect(history.refusals()).toEqual({ busy: 2 });
  expect(history.activity("slack").limited).toBe(1);
  expect(new Set(passed)).toEqual(new Set(["turn", "firstText", "refused", "platformLimited", "call"]));
  history.close();
});

test("keeps the quantiles of many turns in bounded memory", () => {
  const history = open();
  const counted = history.countInto(meter);
  for (let n = 0; n < 20_000; n++)
    counted.turn({ platform: "slack", kind: "message", outcome: "complete" }, n % 100);
  const [minute] = history.minutes();
  expect(minute?.turns).toBe(20_000);
  expect(minute?.turnP50).toBeGreaterThan(40);
  expect(minute?.turnP50).toBeLessThan(60);
  history.close();
});

test("counts reconnects and notes accepted events", async () => {
  const history = open();
  await clock.advance(5000);
  isConnected.slack = true;
  await clock.advance(2000);
  expect(history.activity("slack").reconnects).toBe(0);
  isConnected.slack = false;
  await clock.advance(2000);
  isConnected.slack = true;
  await clock.advance(2000);
  expect(history.activity("slack").reconnects).toBe(1);
  const answers = [Promise.reject(new Error("busy")), Promise.resolve("accepted" as const)];
  const watched = history.watchEvents<Pick<Receiver, "receive" | "keep">>({
    receive: () => answers.shift()!,
    keep: () => Promise.resolve("accepted" as const),
  });
  const event = { platform: "slack" } as IncomingEvent;
  await expect(watched.receive(event)).rejects.toThrow("busy");
  expect(history.activity("slack").lastEventAt).toBeUndefined();
  expect(await watched.receive(event)).toBe("accepted");
  expect(history.activity("slack").lastEventAt).toBe(clock.now());
  history.close();
});
