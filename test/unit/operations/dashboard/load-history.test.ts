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

test("counts the calls that a platform refused, and passes every figure on", () => {
  const history = open();
  const counted = history.countInto(meter);
  counted.turn({ platform: "slack", kind: "message", outcome: "complete" }, 1);
  counted.platformLimited({ platform: "slack", method: "chat.update" });
  expect(history.activity("slack").limited).toBe(1);
  expect(passed).toEqual(["turn", "platformLimited"]);
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
