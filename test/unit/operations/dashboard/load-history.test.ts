import { beforeEach, expect, test } from "vitest";
import { createLoadHistory } from "../../../../src/operations/dashboard/history.ts";
import { createManualClock } from "../../../support/manual-clock.ts";

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

test("counts the calls that a platform refused, and nothing else", () => {
  const history = open();
  history.take({ kind: "turn", platform: "slack", event: "message", outcome: "complete", seconds: 1 });
  history.take({ kind: "limited", platform: "slack", method: "chat.update" });
  expect(history.activity("slack").limited).toBe(1);
  expect(history.activity("slack").lastEventAt).toBeUndefined();
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
  history.take({ kind: "accepted", platform: "slack" });
  expect(history.activity("slack").lastEventAt).toBe(clock.now());
  history.close();
});
